package diagnosis

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// source has one thing of each kind wrong.
func source() Source {
	s := store.Snapshot{Most: 100_000, Pauses: []store.Pause{{Type: "paid", Actor: "ana", Reason: "ticket 7"}}}
	s.Failing = store.Open{Events: 2, Oldest: time.Hour, Types: []store.OfType{{Type: "paid", Events: 2}}, Error: "no order", Same: 2, Waiting: 1, Known: 1}
	s.Parked = store.Open{Events: 1, First: "e1", FirstType: "paid", Types: []store.OfType{{Type: store.UnreadableType, Events: 1}}}
	s.Standing = store.Standing{Entities: 1, Waiting: 2, First: "e1", Key: "o1"}
	s.Due, s.Ahead = time.Hour, time.Hour
	return Source{Name: "notes", Snapshot: s, Limits: Defaults}
}

func TestACauseIsOneFindingAndComesBeforeWhatFollows(t *testing.T) {
	t.Parallel()
	alive := func(s *Source) { s.Snapshot.Workers = []store.Worker{{}} }
	for name, c := range map[string]struct {
		change func(*Source)
		want   []string
	}{
		"everything": {func(*Source) {}, []string{"error workers", "error clock", "error failing", "error parked", "warning paused"}},
		"somebody takes care of what is parked": {
			func(s *Source) { alive(s); s.Snapshot.Parked = store.Open{Known: 1}; s.Snapshot.Due = time.Second },
			[]string{"error clock", "error failing", "error standing", "warning paused"},
		},
		"it has failed for a minute": {func(s *Source) { s.Snapshot.Failing.Oldest = time.Minute }, []string{"error workers", "error clock", "warning failing", "error parked", "warning paused"}},
		"workers died ten seconds ago": {
			func(s *Source) { s.Snapshot.Due = 10 * time.Second },
			[]string{"warning workers", "error clock", "error failing", "error parked", "warning paused"},
		},
		"one parked event is allowed": {
			func(s *Source) { alive(s); s.Snapshot.Due, s.Limits.MaxParked = 0, 2 },
			[]string{"error clock", "error failing", "warning parked", "warning paused"},
		},
		"nothing is looked at": {func(s *Source) {
			s.Limits = check.Limits{}
			s.Snapshot.Standing, s.Snapshot.Pauses = store.Standing{}, nil
		}, nil},
		"all is acknowledged": {
			func(s *Source) {
				s.Snapshot = store.Snapshot{Workers: []store.Worker{{}}}
				s.Snapshot.Failing.Known = 2
			},
			[]string{"info acknowledged"},
		},
		"nobody works, and nothing waits": {func(s *Source) { s.Snapshot = store.Snapshot{} }, []string{"info workers"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := source()
			c.change(&s)
			var got []string
			for _, f := range Causes(s.Findings(lang.English)) {
				got = append(got, string(f.Severity)+" "+f.Check)
				if f.Source != "notes" || f.Problem == "" || f.Evidence == "" || f.Remedy+f.Command == "" {
					t.Errorf("it is not complete: %+v", f)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Health's report is for anybody; errors of handlers may name persons.
func TestErrorsOfHandlersAreEvidenceOnly(t *testing.T) {
	t.Parallel()
	found := false
	for _, f := range source().Findings(lang.English) {
		found = found || strings.Contains(f.Evidence, "last error of 2: no order")
		if strings.Contains(f.Problem+f.Remedy+f.Command, "no order") {
			t.Errorf("%+v", f)
		}
	}
	if !found {
		t.Error("no finding has the error")
	}
}

func TestEveryTextIsInPortuguese(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile(`"((?:[^"\\]|\\.)*[a-z] (?:[^"\\]|\\.)*|%s(?:[^"\\]|\\.)*)"`)
	code, err := os.ReadFile("diagnosis.go")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(code), "\" +\n\t\t\"", "")
	for _, call := range regexp.MustCompile(`t\.(?:say|count)\([^\n]*`).FindAllString(text, -1) {
		for _, m := range said.FindAllStringSubmatch(call, -1) {
			if portuguese[lang.Text(m[1])] == "" && !strings.HasPrefix(m[1], " -") && !strings.HasPrefix(m[1], "idem ") {
				t.Errorf("%q has no Portuguese", m[1])
			}
		}
	}
	for _, c := range Checks {
		if portuguese[c.Means] == "" {
			t.Errorf("%q has no Portuguese", c.Means)
		}
	}
	english := source().Findings(lang.English)
	for n, f := range source().Findings(lang.Portuguese) {
		if f.Problem == english[n].Problem || f.Remedy == english[n].Remedy {
			t.Errorf("it is in English: %+v", f)
		}
	}
}

// The table of docs/alerts.md has the checks of this one, in its order, and the alerts wake people for the others only.
func TestTheDocumentsHaveEachCheck(t *testing.T) {
	t.Parallel()
	const docs = "../../../docs/"
	row := regexp.MustCompile("(?m)^\\| `([a-z ]+)`(, a ticket|, um ticket)? \\|")
	var want, names, tickets []string
	for _, c := range Checks {
		names = append(names, c.Name)
		if c.Ticket {
			c.Name, tickets = c.Name+", a ticket", append(tickets, c.Name)
		}
		want = append(want, c.Name)
	}
	for _, file := range []string{"alerts.md", "pt-BR/alerts.md"} {
		var got []string
		for _, m := range row.FindAllStringSubmatch(read(t, docs+file), -1)[1:] { // without the head
			if m[2] != "" {
				m[1] += ", a ticket"
			}
			got = append(got, m[1])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	rules := regexp.MustCompile(`webhook_healthy\{check(!~|=~)"([^"]+)"\}`).FindAllStringSubmatch(read(t, "../../telemetry/idemprom/alerts/alerts.yml"), -1)
	if len(rules) != 2 {
		t.Errorf("%d rules are about health, want 2", len(rules))
	}
	for _, r := range rules {
		if diff := cmp.Diff(tickets, strings.Split(r[2], "|")); diff != "" {
			t.Errorf("alerts.yml (-want +got):\n%s", diff)
		}
	}
	doc := read(t, "../../health/doc.go")
	for _, name := range names {
		if !regexp.MustCompile(`(?m)^//\t` + name + `(  |$)`).MatchString(doc) {
			t.Errorf("the comment of package health has no check %s", name)
		}
	}
	for _, c := range Checks {
		for _, s := range c.explains {
			if !slices.Contains(names, s) || Place(s) < Place(c.Name) {
				t.Errorf("%s explains %s, which is none, or comes before it", c.Name, s)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
