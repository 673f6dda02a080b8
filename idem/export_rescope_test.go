package idem

import "context"

// WarnOfScopes is what Serve calls at the start.
func WarnOfScopes(ctx context.Context, r Receiver) { warnOfScopes(ctx, r.common()) }
