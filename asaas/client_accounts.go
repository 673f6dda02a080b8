package asaas

import (
	"fmt"
	"iter"
)

// Clients yields a client for each account of a list: the accounts by their scopes, as in [idem.Event], "" for one
// without a scope, and their API keys. It reads the list each time that it is ranged over, so that an account which
// joins is seen by whoever looks at all of them from time to time, such as Watches of package webhook.
//
//	accounts := asaas.Clients(asaas.Production, func(yield func(scope, key string) bool) { … }) // from a table of yours
//
// A key that [NewClient] refuses does not end the list: each call of its client fails with that error.
func Clients(environment Environment, keys iter.Seq2[string, string]) iter.Seq2[string, *Client] {
	return func(yield func(string, *Client) bool) {
		for account, key := range keys {
			client, err := NewClient(environment, key)
			if err != nil {
				client = newClient(environment, "")
				client.broken = fmt.Errorf("the account %q: %w", account, err)
			}
			if !yield(account, client) {
				return
			}
		}
	}
}
