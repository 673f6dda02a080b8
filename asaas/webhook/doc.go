// Package webhook keeps a webhook at Asaas as its application needs it:
//
//   - [NewPlan] compares it with the handlers, and [Plan.Apply] repairs it.
//   - [NewWatch] does so every five minutes, and tells package health: a webhook that is disabled, or
//     not subscribed to a type, delivers nothing, and no delivery shows that.
//   - [RotateToken] gives it a new token, once the receiver accepts that.
//   - [NewQueues] shows and releases the queues of all webhooks, for package console and for metrics.
//
// The command asaas-queue does the same from a shell.
package webhook
