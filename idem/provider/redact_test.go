package provider_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/optional"
	"github.com/paghooks/paghooks/idem/provider"
)

func TestWhatIsPersonalIsHiddenWhereverItIs(t *testing.T) {
	t.Parallel()
	type name string
	if got := provider.RedactIn(optional.Of([]name{"Ana", ""}), provider.RedactEach(provider.Redact[name])); !got.Equal(optional.Of([]name{"[redacted]", ""})) {
		t.Errorf("a list: %v", got)
	}
	if got := provider.RedactIn(optional.Null[name](), provider.Redact[name]); !got.IsNull() {
		t.Errorf("null: %v", got)
	}
	ana := name("Ana")
	if diff := cmp.Diff(name("[redacted]"), *provider.RedactAt(provider.Redact[name])(&ana)); diff != "" || ana != "Ana" {
		t.Errorf("a pointer, to %q (-want +got):\n%s", ana, diff)
	}
	if provider.RedactAt(provider.Redact[name])(nil) != nil {
		t.Error("no pointer has become one")
	}
}
