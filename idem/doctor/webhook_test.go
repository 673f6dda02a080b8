package doctor

import (
	"context"
	"testing"
	"testing/synctest"
)

// silent is a provider that does not answer.
type silent struct{}

func (silent) SourceName() string { return "notes" }

func (silent) Problems(ctx context.Context) (problems []string, advice string, err error) {
	<-ctx.Done()
	return nil, "", ctx.Err()
}

func TestAProviderThatDoesNotAnswerIsAFinding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		found := CheckWebhooks(t.Context(), silent{})
		if !finds(found, "webhook", Warning, "the provider could not be asked", "deadline exceeded") {
			t.Errorf("it finds %s", printed(found))
		}
	})
}
