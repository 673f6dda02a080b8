package langtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/internal/lang"
)

func TestWhatIsWrongWithACatalogIsFound(t *testing.T) {
	t.Parallel()
	catalog := lang.Catalog{
		"open": "aberto", "since %s": "desde", "for %s": "por %[1]s", "one": "um.", "%s of them": "%d deles",
		"Hint": "Dica", "<b>%s</b>": "<b>%s</b>", "never": "nunca",
	}
	got, err := look(t.Context(), "testdata/shop", catalog, "page/*.html")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"%s of them" has the arguments [[1]], its Portuguese "%d deles" has [a verb other than %s]`,
		`"never" is not said anywhere`,
		`"one" ends in "", its Portuguese in "."`,
		`"since %s" has the arguments [[1]], its Portuguese "desde" has []`,
		`testdata/shop/page/page.html: "nested" has no Portuguese`,
		`testdata/shop/page/page.html: the words ["naked" "label"] are in one language`,
		`testdata/shop/shop.go:13:35: "closed" has no Portuguese`,
		`testdata/shop/shop.go:13:44: "since %s" is given 0 arguments, want 1`,
		`testdata/shop/shop.go:13:61: "for %s" is given 2 arguments, want 1`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("it finds (-want +got):\n" + diff)
	}
}

func TestATemplateThatThereIsNotIsAnError(t *testing.T) {
	t.Parallel()
	if found, err := look(t.Context(), "testdata/shop", nil, "nothing/*.html"); err == nil {
		t.Errorf("it finds %v in no templates", found)
	}
}
