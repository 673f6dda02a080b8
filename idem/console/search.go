package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// How long a search may take: as it is asked for, and with more patience.
const (
	searchTime = 3 * time.Second
	longSearch = 25 * time.Second
)

// leastPart is the least number of letters of a part that is searched for.
const leastPart = 4

// finding holds the events that a search has found in a source.
type finding struct {
	Source string
	Fields []string // that were looked at; nil for parts of ids
	operator.Found
}

// search finds events by a part of an id, or by a field of their bodies, in all sources.
func (v *visit) search(ctx context.Context) error {
	shown := struct {
		Text, In string
		Long     bool
		Fields   bool // whether some source has any
		Least    time.Duration
		Took     time.Duration
		Sources  []finding
		Partial  bool // whether something was left out
	}{Text: strings.TrimSpace(v.r.Form.Get("q")), In: v.r.Form.Get("in"), Long: v.r.Form.Get("long") != "", Least: longSearch}
	switch {
	case shown.In != "part" && shown.In != "fields":
		return refuse(http.StatusBadRequest, "There is no such search: look for a part of an id, or for a field.")
	case shown.Text == "" || shown.In == "part" && len(shown.Text) < leastPart:
		return refuse(http.StatusBadRequest, "Write at least %s letters of an id.", leastPart)
	}
	most := searchTime
	if shown.Long {
		most = longSearch
	}
	begun := time.Now()
	for _, s := range v.sources {
		found := finding{Source: s.name}
		var err error
		left := max(most-time.Since(begun), 10*time.Millisecond)
		if shown.In == "part" {
			found.Found, err = s.events.SearchParts(ctx, shown.Text, maxShown, left)
		} else if found.Fields = v.Fields[s.name]; len(found.Fields) > 0 {
			found.Found, err = s.events.SearchFields(ctx, found.Fields, shown.Text, maxShown, left)
		} else {
			continue
		}
		if err != nil {
			return err
		}
		found.Events = v.errorsHidden(found.Events)
		shown.Sources = append(shown.Sources, found)
		shown.Partial = shown.Partial || !found.Complete
	}
	shown.Took, shown.Fields = time.Since(begun), len(v.Fields) > 0
	return v.render(http.StatusOK, "search", v.say("Search"), shown)
}

// link returns the provider's page of an entity, "" for none.
func (v *visit) link(e idem.StoredEvent) string {
	best, address := "", ""
	for prefix, to := range v.Links {
		isWeb := strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "http://")
		if isWeb && e.Key != "" && strings.HasPrefix(e.Key, prefix) && (address == "" || len(prefix) > len(best)) {
			best, address = prefix, to
		}
	}
	return strings.ReplaceAll(address, "{id}", separators.Replace(url.PathEscape(e.Key)))
}

// separators are the characters that divide the query of an address, and not its path.
var separators = strings.NewReplacer("&", "%26", "=", "%3D", "+", "%2B")
