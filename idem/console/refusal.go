package console

import "github.com/paghooks/paghooks/internal/lang"

// refusal is an error with a text for people and a status.
type refusal struct {
	status int
	text   lang.Text
	args   []any
}

func (r *refusal) Error() string { return portuguese.Say(lang.English, r.text, r.args...) }

func refuse(status int, text lang.Text, args ...any) error { return &refusal{status, text, args} }
