package idemnats

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/paghooks/paghooks/idem/broker"
)

// prefix begins the headers with a CloudEvent's attributes.
const prefix = "ce-"

// message returns the message of a header and a body, published by this package or by others.
func message(h nats.Header, body []byte) broker.Message {
	attributes := map[string]string{}
	for name, values := range h {
		if name, ok := strings.CutPrefix(strings.ToLower(name), prefix); ok && len(values) > 0 {
			attributes[name] = decode(values[0])
		}
	}
	return broker.MessageOf(attributes, body)
}

// encode writes a value as CloudEvents does in HTTP headers: with a percent sign and
// two digits for each byte that is not a visible ASCII character, nor a quote.
func encode(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// decode reads a value that encode has written, or else takes it as it is.
func decode(value string) string {
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return value
}
