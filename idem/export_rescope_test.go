package idem

import "context"

// WarnOfScopes is warnOfScopes, which Serve calls at the start.
func WarnOfScopes(ctx context.Context, r Receiver) { r.common().warnOfScopes(ctx) }
