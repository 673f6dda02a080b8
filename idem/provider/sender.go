package provider

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
)

// CheckSender returns an [*idem.Refusal] of source for a request from none of the addresses in
// allowFrom; nil allows all. The address is that of the connection, or the one that the nearest proxy
// wrote in header. A [Dispatcher] calls it.
func CheckSender(r *http.Request, source string, allowFrom []netip.Prefix, header string) error {
	if allowFrom == nil {
		return nil
	}
	hint := "is not in AllowFrom: behind a proxy set ClientAddrHeader, and in a sandbox whose addresses are not published allow all"
	address, ok := clientAddress(r, header)
	switch {
	case !ok:
		hint = "cannot be read: set ClientAddrHeader to the header that your proxy writes it in"
	case slices.ContainsFunc(allowFrom, func(allowed netip.Prefix) bool { return allowed.Contains(address) }):
		return nil
	}
	return &idem.Refusal{Source: source, Reason: ReasonAddressNotAllowed, Hint: "the sender's address " + hint}
}

// clientAddress returns the address that sent the request. Of a header it takes the last
// element, the one that the nearest proxy wrote: a client can write all others.
func clientAddress(r *http.Request, header string) (netip.Addr, bool) {
	text := r.RemoteAddr
	if header != "" {
		lines := r.Header.Values(header)
		if len(lines) == 0 {
			return netip.Addr{}, false
		}
		last := lines[len(lines)-1]
		text = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
	}
	return parseAddress(text)
}

// parseAddress reads an address with or without a port. An IPv4 address in IPv6
// clothes is the IPv4 address.
func parseAddress(text string) (netip.Addr, bool) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap().WithZone(""), true
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	address, err := netip.ParseAddr(text)
	return address.Unmap().WithZone(""), err == nil
}
