package zeltapay

import (
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	headerSignature = "Zeltapay-Signature"
	headerTimestamp = "Zeltapay-Timestamp"
	headerEventID   = "Zeltapay-Event-Id"
	headerEventType = "Zeltapay-Event-Type"
)

// Bounds of what one delivery can make the verifier compute.
const (
	maxSignatureHeader = 1024
	maxSignatures      = 8
	maxTimestamp       = 15 // digits; seconds have 10, milliseconds 13
)

// signature is what the headers say about it, before anything is believed.
type signature struct {
	timestamp string   // the digits as received: they are what was signed
	macs      [][]byte // every v1
}

// signature reads and checks the headers' shape.
func (v Verifier) signature(h http.Header) (signature, error) {
	value, err := single(h, headerSignature)
	if err != nil {
		return signature{}, err
	}
	if value == "" {
		return signature{}, refuse(ReasonMissingSignature, "there is no Zeltapay-Signature header: "+
			"not a delivery of Zelta Pay, or a proxy dropped the header")
	}
	if sum, ok := decodeMAC(value); ok && v.AllowBareSignature {
		return bareSignature(h, sum)
	}
	return parseSignature(value)
}

func bareSignature(h http.Header, sum []byte) (signature, error) {
	timestamp, err := single(h, headerTimestamp)
	if err != nil {
		return signature{}, err
	}
	if timestamp == "" {
		return signature{}, refuse(ReasonMissingTimestamp, "a bare Zeltapay-Signature comes with a Zeltapay-Timestamp, and there is none")
	}
	return signature{timestamp: timestamp, macs: [][]byte{sum}}, nil
}

// parseSignature reads "t=<seconds>, v1=<hex>". Other keys are ignored.
func parseSignature(value string) (s signature, err error) {
	if len(value) > maxSignatureHeader {
		return s, malformed("is too long")
	}
	for part := range strings.SplitSeq(value, ",") {
		key, val, _ := strings.Cut(strings.Trim(part, " \t"), "=")
		switch key {
		case "t":
			if s.timestamp != "" {
				return s, malformed("has more than one t")
			}
			s.timestamp = val
		case "v1":
			sum, ok := decodeMAC(val)
			if !ok {
				return s, malformed("has a v1 that is not 64 hexadecimal digits")
			}
			s.macs = append(s.macs, sum)
		}
	}
	switch {
	case s.timestamp == "" || len(s.macs) == 0:
		return s, malformed("is not t=<seconds>, v1=<hex> (if yours is only the hex digits, set AllowBareSignature)")
	case len(s.macs) > maxSignatures:
		return s, malformed("has too many v1")
	}
	return s, nil
}

func malformed(what string) error {
	return refuse(ReasonMalformedSignature, headerSignature+" "+what)
}

// decodeMAC reads the hexadecimal digits, of either case, of one HMAC-SHA256.
func decodeMAC(digits string) ([]byte, bool) {
	if len(digits) != 64 {
		return nil, false
	}
	sum, err := hex.DecodeString(digits)
	return sum, err == nil
}

func unixSeconds(digits string) (time.Time, error) {
	seconds, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || len(digits) > maxTimestamp {
		return time.Time{}, refuse(ReasonMalformedTimestamp, "the signature's time is not Unix seconds in digits")
	}
	return time.Unix(int64(seconds), 0), nil
}

// single returns a header that may come once at most: of two, a proxy could
// read one and this server the other.
func single(h http.Header, name string) (string, error) {
	switch sent := sentAs(h, name); len(sent) {
	case 0:
		return "", nil
	case 1:
		return sent[0], nil
	}
	return "", repeated(name)
}

func repeated(name string) error {
	return refuse(ReasonDuplicateHeader, name+" comes more than once, Zelta Pay sends it once: see what a proxy adds")
}

// sentAs returns the values of a header, whatever its case: API gateways hand
// headers on in lower case.
func sentAs(h http.Header, name string) (values []string) {
	for key, sent := range h {
		if strings.EqualFold(key, name) {
			values = append(values, sent...)
		}
	}
	return values
}
