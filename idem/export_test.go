package idem

// Waiting returns how many deliveries wait to be stored, those not among them
// that are being stored.
func (i *Inbox) Waiting() int { return i.writer.Waiting() }
