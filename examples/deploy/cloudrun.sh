# The release step, once for each version, before the service.
gcloud run jobs deploy shop-migrate --image "$IMAGE" --command /shop --args migrate \
	--set-secrets DATABASE_URL=shop-owner-url:latest --execute-now --wait
gcloud run deploy shop --image "$IMAGE" \
	--no-cpu-throttling --min-instances 1 --max-instances 3 \
	--startup-probe httpGet.path=/up \
	--set-secrets DATABASE_URL=shop-url:latest,ASAAS_WEBHOOK_TOKEN=shop-asaas-token:latest
