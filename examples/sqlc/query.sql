-- name: BookPayment :exec
insert into orders (charge_id, amount, net, due_on, paid_on, viewed_at, note)
values ($1, $2, $3, $4, $5, $6, $7) on conflict do nothing;

-- name: GetOrder :one
select * from orders where charge_id = $1;

-- name: SetPaid :execrows
update purchases set paid = sqlc.arg(paid), settled = sqlc.arg(settled) where id = sqlc.arg(id);
