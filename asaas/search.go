package asaas

// SearchFields are the names of the fields of bodies by which package console finds events:
//
//	page.Fields = map[string][]string{"asaas": asaas.SearchFields}
//
// They are ids: Asaas's, and your own in externalReference. None is personal, as long as you write
// no name and no CPF into externalReference.
var SearchFields = []string{"externalReference", "customer", "payment", "subscription", "installment", "paymentLink"}
