package browser

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe is a program that looks for what keeps people from using a page.
var axe = sync.OnceValues(func() (string, error) {
	path, err := cached(context.Background(), npmFile{
		name: "axe-core@4.14.1", integrity: "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==", size: "1 MB",
		entry: "package/axe.min.js", as: "axe-core-4.14.1.js",
	})
	if err != nil {
		return "", err
	}
	program, err := os.ReadFile(path)
	return string(program) + "; undefined", err
})

// findings lists what axe finds.
const findings = `axe.run(document, {resultTypes: ["violations"]}).then(r => {
	if (r.passes.length < 10) return ["it looked at " + r.passes.length + " rules only"];
	return r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html).join(" "));
})`

func TestAxeFindsNothingInEitherLanguageThemeAndWidth(t *testing.T) {
	t.Parallel()
	program, err := axe()
	if err != nil {
		t.Fatal(err)
	}
	b := newTab(t)
	addresses := b.fill()
	for _, look := range []struct {
		theme, language string
		width           int64
	}{{"light", "en", 1200}, {"dark", "pt-BR", 1200}, {"light", "pt-BR", 390}, {"dark", "en", 390}} {
		b.theme(look.theme)
		b.do(chromedp.EmulateViewport(look.width, 850))
		for _, address := range addresses {
			b.open(in(look.language, address))
			if got := eval[string](b, `document.documentElement.lang`); got != look.language {
				t.Errorf("%s is in %s, want %s", address, got, look.language)
			}
			b.do(chromedp.Evaluate[chromedp.Void](program))
			found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](findings, chromedp.EvalAwaitPromise))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				t.Errorf("%q in %v: %s", address, look, f)
			}
		}
	}
}

// in is the address of a page in a language, which is kept for those that follow.
func in(language, address string) string {
	separator := "?"
	if strings.Contains(address, "?") {
		separator = "&"
	}
	return address + separator + "lang=" + language
}
