package relay

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// setAsideMark began the payload of a message that was set aside, before
// [idem.SetAsideType] said so.
const setAsideMark = "paghooks-relay: not signed\n"

func withoutSetAsideMark(body []byte) []byte { return bytes.TrimPrefix(body, []byte(setAsideMark)) }

// A message's body is a line with the signature of the rest, a line of JSON that
// names the event, and the provider's body as it is.
const sealed = "paghooks-relay-1 "

// sealedName is the line of a message that names its event.
type sealedName struct {
	wire.Name
	RelayedAt time.Time `json:"relayed_at"`
}

// seal is the body of an event's message, which is relayed at a time. The event is
// normalized.
func seal(e idem.Event, at time.Time, secret string) []byte {
	header, err := json.Marshal(sealedName{wire.NameOf(store.Event(e)), at.UTC()})
	if err != nil {
		panic(err) // texts, a number, and a time that JSON has
	}
	signed := append(append(header, '\n'), e.Payload...)
	return append([]byte(sealed+hex.EncodeToString(sign(signed, secret))+"\n"), signed...)
}

func sign(signed []byte, secret string) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(sealed))
	mac.Write(signed)
	return mac.Sum(nil)
}

// unseal verifies a message's body, and only then reads it.
func unseal(body []byte, secrets []string) (e idem.Event, at time.Time, err error) {
	body = withoutSetAsideMark(body) // given once more
	head, signed, ok := bytes.Cut(body, []byte("\n"))
	digits, found := bytes.CutPrefix(head, []byte(sealed))
	if !ok || !found {
		return e, at, errors.New("the message is not a relay's: see who else publishes to its topic or queue")
	}
	signature, err := hex.DecodeString(string(digits))
	if err != nil || !anySigns(signed, signature, secrets) {
		return e, at, errors.New("the message is not signed with one of the secrets: let relay and consumer have the same one, then give the payload to relay.To again")
	}
	header, payload, _ := bytes.Cut(signed, []byte("\n"))
	var s sealedName
	err = json.Unmarshal(header, &s)
	if err == nil {
		var row store.Event
		row, err = s.Event(payload)
		e = idem.Event(row)
	}
	if err != nil {
		return e, at, fmt.Errorf("the message is of a newer relay: update the consumer, then give the payload to relay.To again: %w", err)
	}
	return e, s.RelayedAt, nil
}

func anySigns(signed, signature []byte, secrets []string) (yes bool) {
	for _, s := range secrets {
		if hmac.Equal(sign(signed, s), signature) {
			yes = true
		}
	}
	return yes
}

// minSecret is the length of the shortest secret: 128 bits as hexadecimal digits.
const minSecret = 32

// checkSecrets returns an error for secrets that are missing or too short. name is the
// function that has them.
func checkSecrets(name string, secrets ...string) error {
	if len(secrets) == 0 {
		return fmt.Errorf("relay: %s has no secret: give it the relay's", name)
	}
	for _, s := range secrets {
		if len(s) < minSecret {
			return fmt.Errorf("relay: a secret of %s has %d characters, and needs %d: let openssl rand -hex 32 make one", name, len(s), minSecret)
		}
	}
	return nil
}
