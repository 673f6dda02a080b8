package lang_test

import (
	"testing"
	"time"

	"github.com/paghooks/paghooks/internal/lang"
)

func TestTheBrowserChoosesTheLanguageByItsQuality(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]lang.Lang{
		"": lang.English, "pt-BR,pt;q=0.9,en-US;q=0.8,en;q=0.7": lang.Portuguese, "en-US,en;q=0.9,pt;q=0.8": lang.English,
		"pt-PT": lang.Portuguese, "PT": lang.Portuguese, "de, pt;q=0.5": lang.Portuguese, "de": lang.English, "de,*;q=0.9,pt;q=0.1": lang.English,
		"en;q=0.5, pt;q=0.6": lang.Portuguese, "pt;q=0": lang.English, "pt;q=0,en;q=0.1": lang.English, "pt ; Q=1.0 , en ; q=0.999": lang.Portuguese,
		"en,pt": lang.English, "pt,en": lang.Portuguese, "pt;q=2,en;q=0.1": lang.English, "pt;q=x": lang.English, "pt;q=NaN": lang.English, ";,;q=1": lang.English,
		"ptx": lang.English, "es-419,es;q=0.9": lang.English,
	} {
		if got := lang.OfBrowser(accept); got != want {
			t.Errorf("OfBrowser(%q) = %s, want %s", accept, got, want)
		}
	}
}

func FuzzOfBrowser(f *testing.F) {
	f.Add("pt-BR,pt;q=0.9,en;q=0.8")
	f.Fuzz(func(t *testing.T, accept string) {
		if got := lang.OfBrowser(accept); got != lang.English && got != lang.Portuguese {
			t.Errorf("OfBrowser(%q) = %q, in which there are no texts", accept, got)
		}
		if got := lang.OfBrowser("pt,en;q=0.999," + accept); got != lang.Portuguese {
			t.Errorf("what follows the first of the best, %q, makes it %s", accept, got)
		}
	})
}

func TestTextsNumbersAndDurationsAreSaidInTheLanguage(t *testing.T) {
	t.Parallel()
	words := lang.Catalog{"%s after %s": "%s depois de %s", "an event": "um evento", "%s of %s": "de %[2]s, %[1]s", "%s event": "%s evento", "%s events": "%s eventos", "100%": "100%", "once": "uma vez"}
	for _, row := range []struct{ got, want string }{
		{words.Say(lang.English, "%s after %s", lang.Text("an event"), 26*time.Hour), "an event after 1 d 2 h"},
		{words.Say(lang.Portuguese, "%s after %s", lang.Text("an event"), 90*time.Second), "um evento depois de 1 min"},
		{words.Say(lang.Portuguese, "%s after %s", "an event", time.Millisecond), "an event depois de menos de 1 s"},
		{words.Say(lang.Portuguese, "%s of %s", 1234, int64(-1234567)), "de -1.234.567, 1.234"},
		{words.Say(lang.English, "%s of %s", 1234, int64(-1234567)), "1,234 of -1,234,567"},
		{words.Say(lang.Portuguese, "100%"), "100%"},
		{words.Count(lang.Portuguese, 1, "%s event", "%s events"), "1 evento"},
		{words.Count(lang.Portuguese, 0, "%s event", "%s events"), "0 eventos"},
		{words.Count(lang.English, 1200, "%s event", "%s events"), "1,200 events"},
		{words.Count(lang.Portuguese, 1, "once", "%s events"), "uma vez"},
		{lang.Portuguese.Number(-999), "-999"},
		{lang.English.Age(13*24*time.Hour + 5*time.Hour), "13 d 5 h"},
		{lang.Portuguese.Age(2000 * 24 * time.Hour), "2.000 d"},
		{lang.English.Age(59*time.Minute + 59*time.Second), "59 min"},
	} {
		if row.got != row.want {
			t.Errorf("it says %q, want %q", row.got, row.want)
		}
	}
}
