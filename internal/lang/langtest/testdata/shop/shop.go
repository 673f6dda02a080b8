// Package shop says texts, some of them wrongly.
package shop

import "github.com/paghooks/paghooks/internal/lang"

var words = lang.Catalog{"open": "aberto"}

const closed lang.Text = "closed" // missing

func say(t lang.Text, args ...any) string { return words.Say(lang.Portuguese, t, args...) }

func texts() []string {
	return []string{say("open"), say(closed), say("since %s"), say("for %s", 1, 2), words.Count(lang.English, 2, "one", "%s of them"), "no text"}
}
