package asaas

import (
	"net/http"
	"net/netip"
	"strings"
)

// OfficialAddresses returns the addresses that Asaas says it delivers from, in
// production. The sandbox delivers from others too, which are not published.
//
// See https://docs.asaas.com/docs/ips-oficiais-do-asaas.
func OfficialAddresses() []netip.Prefix {
	return []netip.Prefix{
		netip.MustParsePrefix("52.67.12.206/32"),
		netip.MustParsePrefix("18.230.8.159/32"),
		netip.MustParsePrefix("54.94.136.112/32"),
		netip.MustParsePrefix("54.94.183.101/32"),
	}
}

// checkAddress refuses a request from none of the addresses in allowFrom; nil allows all. The
// address is that of the connection, or the one that the nearest proxy wrote in header.
func checkAddress(r *http.Request, allowFrom []netip.Prefix, header string) error {
	if allowFrom == nil {
		return nil
	}
	address, ok := clientAddress(r, header)
	if !ok {
		return refuse(ReasonAddressNotAllowed, "the sender's address cannot be read: set ClientAddrHeader to the header that your proxy writes it in")
	}
	for _, allowed := range allowFrom {
		if allowed.Contains(address) {
			return nil
		}
	}
	return refuse(ReasonAddressNotAllowed, "the sender's address is not in AllowFrom: "+
		"behind a proxy set ClientAddrHeader, and in the sandbox, whose addresses are not published, allow all")
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
