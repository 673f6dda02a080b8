package asaas_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// answering is a client of a server that answers each request, by its method
// and path, with this JSON; "" is 204.
func answering(answers map[string]string) (client *asaas.Client, closeServer func()) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		switch {
		case !ok:
			w.WriteHeader(http.StatusNotFound)
		case answer == "":
			w.WriteHeader(http.StatusNoContent)
		default:
			_, _ = io.WriteString(w, answer)
		}
	}))
	client, err := asaas.NewClient(asaas.Sandbox, "$aact_hmlg_of_an_example")
	if err != nil {
		panic(err)
	}
	client.BaseURL = server.URL
	return client, server.Close
}

func ExampleNewClient() {
	client, err := asaas.NewClient(asaas.Production, "$aact_prod_of_an_example") // os.Getenv("ASAAS_API_KEY")
	fmt.Println(client, err)
	_, err = asaas.NewClient(asaas.Production, "$aact_hmlg_of_an_example")
	fmt.Println(err)
	// Output:
	// asaas.Client(production) <nil>
	// asaas: the API key is not of the environment production, it starts with $aact_hmlg_: give the other environment, or the other key
}

func ExampleClient_Webhooks() {
	client, closeServer := answering(map[string]string{
		"GET /webhooks": `{"hasMore":false,"data":[{"id":"3b1f","name":"Loja","enabled":true},{"id":"77c0","name":"Testes","enabled":false}]}`,
	})
	defer closeServer()
	for w, err := range client.Webhooks(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(w.ID, w.Name.Or(""), "enabled:", w.Enabled.Or(false))
	}
	// Output:
	// 3b1f Loja enabled: true
	// 77c0 Testes enabled: false
}

func ExampleClient_Webhook() {
	client, closeServer := answering(map[string]string{
		"GET /webhooks/3b1f": `{"id":"3b1f","interrupted":true,"penalizedRequestsCount":15}`,
	})
	defer closeServer()
	w, err := client.Webhook(context.Background(), "3b1f")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("stopped:", w.Interrupted.Or(false), "after", w.PenalizedRequestsCount.Or(0))
	_, err = client.Webhook(context.Background(), "4c20")
	fmt.Println(err)
	// Output:
	// stopped: true after 15
	// asaas: Webhook(4c20): it was answered with 404: there is nothing for the API key at this address: see the id, the account, and the API's address
}

func ExampleClient_CreateWebhook() {
	client, closeServer := answering(map[string]string{
		"POST /webhooks": `{"id":"3b1f","enabled":true,"hasAuthToken":true,"authToken":"made by Asaas"}`,
	})
	defer closeServer()
	w, err := client.CreateWebhook(context.Background(), asaas.WebhookCreate{
		Name:   "Loja",
		URL:    "https://shop.example/webhooks/asaas",
		Email:  "ops@shop.example",
		Events: []asaas.EventType{asaas.EventPaymentReceived, asaas.EventPaymentRefunded},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	token, ok := w.AuthToken.Get() // keep it, for asaas.NewDispatcher: it is not told again
	fmt.Println(w.ID, len(token) > 0, ok)
	// Output: 3b1f true true
}

func ExampleClient_UpdateWebhook() {
	client, closeServer := answering(map[string]string{
		"PUT /webhooks/3b1f": `{"id":"3b1f","url":"https://new.shop.example/webhooks/asaas","enabled":true}`,
	})
	defer closeServer()
	w, err := client.UpdateWebhook(context.Background(), "3b1f", asaas.WebhookUpdate{
		URL: value.Of("https://new.shop.example/webhooks/asaas"), // and nothing else
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.URL.Or(""))
	// Output: https://new.shop.example/webhooks/asaas
}

func ExampleClient_DeleteWebhook() {
	client, closeServer := answering(map[string]string{"DELETE /webhooks/3b1f": `{"deleted":true,"id":"3b1f"}`})
	defer closeServer()
	fmt.Println(client.DeleteWebhook(context.Background(), "3b1f"))
	// Output: <nil>
}

func ExampleClient_RemoveBackoff() {
	client, closeServer := answering(map[string]string{"POST /webhooks/3b1f/removeBackoff": ""})
	defer closeServer()
	fmt.Println(client.RemoveBackoff(context.Background(), "3b1f"))
	// Output: <nil>
}

func ExampleClient_Resume() {
	client, closeServer := answering(map[string]string{"PUT /webhooks/3b1f": `{"id":"3b1f","interrupted":false}`})
	defer closeServer()
	fmt.Println(client.Resume(context.Background(), "3b1f"))
	// Output: <nil>
}

func ExampleTimeLeft() {
	newest := time.Now().Add(-20 * 24 * time.Hour) // when the newest event that was acknowledged came to be
	fmt.Println(asaas.TimeLeft(newest))
	// Output: 0s
}

func ExampleAPIError() {
	client, closeServer := answering(nil)
	defer closeServer()
	err := client.Resume(context.Background(), "4c20")
	if e, ok := errors.AsType[*asaas.APIError](err); ok {
		switch e.Outcome {
		case asaas.CallNotDelivered:
			fmt.Println("repeat it after", e.RetryAfter)
		case asaas.CallUnknown:
			fmt.Println("look with Webhook before it is repeated")
		case asaas.CallRejected:
			fmt.Println("change something first:", e.Status)
		}
	}
	// Output: change something first: 404
}

// The order is stored before, and nothing with its id was found by Payments.
func ExampleClient_CreatePayment() {
	client, closeServer := answering(map[string]string{
		"POST /payments": `{"id":"pay_1_a1B2c3D4e5F6g7","status":"PENDING","value":59.9,"invoiceUrl":"https://www.asaas.com/000/i/a1B2c3"}`,
	})
	defer closeServer()
	p, err := client.CreatePayment(context.Background(), asaas.PaymentCreate{
		Customer: "cus_000005219613", BillingType: asaas.BillingTypePix, Value: value.Of(asaas.Cents(5990)),
		DueDate: "2026-12-01", ExternalReference: value.Of("order-7"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.ID, p.InvoiceURL)
	// Output: pay_1_a1B2c3D4e5F6g7 https://www.asaas.com/000/i/a1B2c3
}
