package asaas

// KeyOf is the key of an event that is decoded.
func KeyOf(e Event) string { return e.key() }
