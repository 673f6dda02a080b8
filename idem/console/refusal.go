package console

// refusal is an error with what people are told and a status.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func refuse(status int, text string) error { return &refusal{status, text} }
