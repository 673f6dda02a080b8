package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// printCurl prints lines for a shell that deliver to the shop at url.
func printCurl(out io.Writer, url string) error {
	url = strings.TrimSuffix(url, "/")
	pix := fromAsaas("PAYMENT_RECEIVED", json.RawMessage(
		`{"id":"evt_1","event":"PAYMENT_RECEIVED","payment":{"id":"pay_1_a1B2c3D4e51005","value":80.00,"status":"RECEIVED","externalReference":"A-1005"}}`))
	card := fromZeltapay("payment.success", json.RawMessage(
		`{"eventId":"evt_1","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":1234,"currency":"USD"},"metadata":{"orderId":"Z-2003"}}`))
	_, err := fmt.Fprintf(out, `# Asaas says that A-1005 is paid. Paste it twice: it is booked once.
%s

# Somebody says so without the token.
%s

# Zelta Pay says that Z-2003 is paid. The signature is good for 5 minutes.
%s

# Somebody changed the amount on the way.
%s

# What the shop holds now.
curl -sS %s/orders

# The same lines, signed anew.
go run ./examples/quickstart -curl %s
`, pix.curl(url), pix.withToken("a guess").curl(url), card.curl(url), card.changed("1234", "1").curl(url), url, url)
	return err
}

func (m message) curl(url string) string {
	var line strings.Builder
	line.WriteString(`curl -sS -w ' %{http_code}\n'`)
	header := m.header()
	for _, name := range slices.Sorted(maps.Keys(header)) {
		fmt.Fprintf(&line, " -H '%s: %s'", name, header.Get(name))
	}
	fmt.Fprintf(&line, " -d '%s' %s%s", m.body, url, m.path)
	return line.String()
}
