package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/operator"
)

// schemas finds tables that the search_path hides, or that a first schema without
// tables is about to hide.
func (e *examination) schemas(ctx context.Context) ([]Finding, error) {
	first, having, err := store.Schemas(ctx, e.db)
	if err != nil || len(having) == 0 {
		return nil, err
	}
	if having[0] != first {
		return []Finding{{
			Severity: Error, Problem: "the first schema of the search_path has no tables, and a later one has: whoever makes them there makes done events run again",
			Evidence: fmt.Sprintf("%s has none, the tables are in %s", first, strings.Join(having, ", ")),
			Remedy:   fmt.Sprintf("put %s first in the search_path of this role or connection; if %s is to have its own, idem migrate -schema", having[0], first),
		}}, nil
	}
	if len(having) == 1 {
		return nil, nil
	}
	f := Finding{
		Severity: Info, Problem: "there are several sets of tables along the search_path, and the first one is used",
		Evidence: "in the schemas " + strings.Join(having, ", "),
	}
	var used []bool
	for _, schema := range having {
		has, err := one[bool](ctx, e, `select exists (select from `+pgx.Identifier{schema, "idem_events"}.Sanitize()+`)`)
		if err != nil {
			return []Finding{f}, fmt.Errorf("looking for events in schema %s: %w", schema, err)
		}
		used = append(used, has)
	}
	for n, has := range used {
		if has && !used[0] {
			f.Severity, f.Problem = Error, "the first set of tables along the search_path has no event, and a later one has: those that are done run again, and those that wait are not processed"
			f.Evidence = fmt.Sprintf("%s has none, %s has", having[0], having[n])
			f.Remedy = fmt.Sprintf("put %s first in the search_path of this role or connection, unless %s is new on purpose", having[n], having[0])
			break
		}
	}
	return []Finding{f}, nil
}

// scopes finds sources of which a scope was introduced, perhaps without moving the events that
// were stored before.
func (e *examination) scopes(ctx context.Context) ([]Finding, error) {
	return e.ofEach(func(o *operator.Operator) (*Finding, error) {
		mixed, err := store.HasMixedScopes(ctx, e.db, o.SourceName())
		if err != nil || !mixed {
			return nil, err
		}
		return &Finding{
			Severity: Warning, Problem: "events are stored with and without a scope: where an account has got one, those of before that come again are done twice",
			Evidence: "idem list -account \"\" shows those without that are not done",
			Remedy:   "if one account has none on purpose, nothing; else stop every process of the source, and idem rescope",
		}, nil
	})
}
