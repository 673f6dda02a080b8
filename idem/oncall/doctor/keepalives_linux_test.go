//go:build long

package doctor

import (
	"testing"

	"github.com/paghooks/paghooks/internal/postgres"
)

// A server on an address of the loopback network that nobody else has; on its
// socket there are no keepalives.
func TestKeepalivesThatComeLateAreFound(t *testing.T) {
	t.Parallel()
	p := start(t, &postgres.Cluster{Settings: map[string]string{"listen_addresses": "127.47.11.8"}})
	p.config.ConnConfig.Host, p.config.ConnConfig.Port = "127.47.11.8", 5432
	p.config.ConnConfig.Fallbacks = nil
	p.want("keepalives", Info, "Postgres notices late that a client is cut off", "after 02:11:15")
	p.session("tcp_keepalives_idle", "20")
	p.session("tcp_keepalives_interval", "5")
	p.session("tcp_keepalives_count", "4")
	for _, f := range p.check() {
		if f.Check == "keepalives" && f.Evidence != "idle_in_transaction_session_timeout is 0" {
			t.Errorf("it finds %s", f)
		}
	}
}
