package asaas

import (
	"net/url"
	"strings"
)

// placeOf returns a URL without parts that may be a secret.
func placeOf(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// placeOfText is placeOf of an address that may be none.
func placeOfText(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(no URL)"
	}
	return placeOf(u)
}

// sameAddress reports whether two URLs lead to the same place, however they are
// spelled.
func sameAddress(a, b string) bool { return normalAddress(a) == normalAddress(b) }

func normalAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	if port := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; port != "" {
		u.Host = strings.TrimSuffix(u.Host, port)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u.String()
}
