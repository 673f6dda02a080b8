package zeltapay

import "github.com/paghooks/paghooks/idem/provider"

// EventTestPayment is the type of a payment.success in which no money moved:
// its transaction.isTest is true. Zelta Pay does not send this name. [Identify]
// gives it to the event, so that logs, metrics and the stored event show it.
const EventTestPayment EventType = EventPaymentSuccess + provider.TestSuffix
