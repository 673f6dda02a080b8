package provider

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/idem"
)

// CheckSender returns an [*idem.Refusal] of source for a request from none of the addresses in
// allowFrom; nil allows all. The address is that of the connection, or the one that the nearest proxy
// wrote in header. The refusal names the address and where it was taken from. A [Dispatcher] calls it.
func CheckSender(r *http.Request, source string, allowFrom []netip.Prefix, header string) error {
	if allowFrom == nil {
		return nil
	}
	allowed := func(header string) bool {
		address, ok := parseAddress(clientText(r, header))
		return ok && slices.ContainsFunc(allowFrom, func(p netip.Prefix) bool { return p.Contains(address) })
	}
	if allowed(header) {
		return nil
	}
	hint := fmt.Sprintf("the sender's address, %.60q as %s has it, is not in AllowFrom: ", clientText(r, header), placeOf(header))
	switch fits := slices.IndexFunc(proxyHeaders, allowed); {
	case fits >= 0:
		hint += fmt.Sprintf("%s has an address that is allowed, so set ClientAddrHeader to %q if your own proxy writes it, and not the sender",
			proxyHeaders[fits], proxyHeaders[fits])
	case len(allElements(r, "X-Forwarded-For")) > 1:
		hint += "there is more than one proxy, and X-Forwarded-For ends with the address of the one before the last: " +
			"set ClientAddrHeader to a header in which a proxy writes the sender alone, CF-Connecting-IP or X-Real-IP for example"
	case slices.ContainsFunc(proxyHeaders, func(name string) bool { return r.Header.Get(name) != "" }) && header == "":
		hint += "behind a proxy set ClientAddrHeader to the header that the proxy writes the sender in"
	default:
		hint += "behind a proxy set ClientAddrHeader, and in a sandbox whose addresses are not published allow all"
	}
	return &idem.Refusal{Source: source, Reason: ReasonAddressNotAllowed, Hint: hint}
}

// proxyHeaders are headers that proxies write the sender's address in, the more particular first.
var proxyHeaders = []string{"CF-Connecting-IP", "True-Client-IP", "X-Real-IP", "X-Forwarded-For", "Forwarded"}

// placeOf names the place of an address: a header, or the connection.
func placeOf(header string) string {
	if header == "" {
		return "the connection"
	}
	return "the last element of " + header
}

// clientText returns the text of the sender's address: that of the connection, or the last element of a header, which
// the nearest proxy wrote. A client can write all other elements.
func clientText(r *http.Request, header string) string {
	if header == "" {
		return r.RemoteAddr
	}
	all := allElements(r, header)
	if len(all) == 0 {
		return ""
	}
	last := all[len(all)-1]
	if !strings.EqualFold(header, "Forwarded") {
		return last
	}
	for pair := range strings.SplitSeq(last, ";") { // for=192.0.2.60;proto=https, for="[2001:db8::1]:4711"
		if name, value, _ := strings.Cut(strings.TrimSpace(pair), "="); strings.EqualFold(name, "for") {
			return strings.Trim(value, `"`)
		}
	}
	return ""
}

// allElements returns the elements of a header that is a list, whose values may be in several lines.
func allElements(r *http.Request, header string) (all []string) {
	for _, line := range r.Header.Values(header) {
		for element := range strings.SplitSeq(line, ",") {
			all = append(all, strings.TrimSpace(element))
		}
	}
	return all
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
