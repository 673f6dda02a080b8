package paghooks_test

import (
	"log"
	"os"

	"github.com/paghooks/paghooks"
	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
)

// A program that books each payment of Asaas's once. With ASAAS_API_KEY it also books, once a day, what no event has
// brought, and it says what was paid and is of no order.
func ExampleRun() {
	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
	events.OnPayment(charges.Orders(paid))
	unmatched := &charges.Unmatched{Known: `exists (select from orders o where o.id = c.external_reference)`}
	if err := paghooks.Run(":8080", events, &charges.Daily{Orders: paid}, unmatched); err != nil {
		log.Fatal(err)
	}
}
