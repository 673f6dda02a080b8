package promises_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestEventIsProcessedOnceHoweverOftenItComes(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	for i, want := range []string{`{"received":true}`, `{"received":true,"duplicate":true}`, `{"received":true,"duplicate":true}`} {
		if status, answer := s.Deliver(paid("e1")); status != 200 || answer != want {
			t.Errorf("delivery %d was answered %d %s, want 200 %s", i+1, status, answer, want)
		}
	}
	s.WantEffects(1)
	s.WantState("e1", idem.StateDone)
	s.WantPayload("e1", "")
	if diff := cmp.Diff([]idem.Outcome{idem.Done, idem.Duplicate, idem.Duplicate}, s.Outcomes()); diff != "" {
		t.Error("outcomes (-want +got):\n" + diff)
	}
}

func TestEventsOfTwoAccountsNeverCollide(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	for _, account := range []string{"a", "b", "a"} {
		if status, _, err := s.Post(t.Context(), paid("e1"), map[string]string{"account": account}); err != nil || status != 200 {
			t.Fatal(status, err)
		}
	}
	s.WantEffects(2)
	if got := queryOne[[]string](s, `select array_agg(scope order by scope) from effects`); !cmp.Equal(got, []string{"a", "b"}) {
		t.Errorf("handlers saw the accounts %q", got)
	}
}

func TestGenuineBodiesAreNeverRefused(t *testing.T) {
	t.Parallel()
	shared := newApp(t)
	shared.On(func(ctx context.Context, tx pgx.Tx, _ *note) error {
		_, err := tx.Exec(ctx, `insert into effects values ('one')`)
		return err
	})
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		body  string
		state idem.State
		done  bool
	}{
		"unknown type":                    {`{"id":"e1","type":"new"}`, idem.StateUnhandled, false},
		"an id that text cannot hold":     {`{"id":"e\u0000","type":"paid"}`, idem.StateDone, true},
		"a type that text cannot hold":    {`{"id":"e1","type":"\u0000"}`, idem.StateUnhandled, false},
		"an entity that text cannot hold": {`{"id":"e1","type":"paid","order":"\u0000"}`, idem.StateDone, true},
		"invalid UTF-8":                   {"{\"id\":\"e\xff\",\"type\":\"paid\"}", idem.StateDone, true},
		"an id too long for an index":     {`{"id":"` + long + `","type":"paid"}`, idem.StateDone, true},
		"a type too long for an index":    {`{"id":"e1","type":"` + long + `"}`, idem.StateUnhandled, false},
		"an entity too long":              {`{"id":"e1","type":"paid","order":"` + long + `"}`, idem.StateDone, true},
		"no id":                           {`{"type":"paid"}`, idem.StateDone, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := shared.emptied(t)
			s.WantAnswer(c.body, http.StatusOK)
			s.WantAnswer(c.body, http.StatusOK)
			if got := queryOne[string](s, `select string_agg(state, ',') from idem_events`); got != string(c.state) {
				t.Errorf("stored as %q, want one row %q", got, c.state)
			}
			if c.state == idem.StateUnhandled {
				if got := queryOne[[]byte](s, `select body from idem_payloads`); string(got) != c.body {
					t.Errorf("the payload is kept as %q", got)
				}
			}
			if c.done {
				s.WantEffects(1)
			}
		})
	}
}

// An id that no column takes names its event all the same: another body with it is a
// conflict, and has no effect.
func TestEventWhoseIDCannotBeStoredIsOneEventWhateverItsBody(t *testing.T) {
	t.Parallel()
	shared := newApp(t)
	shared.On(func(ctx context.Context, tx pgx.Tx, _ *note) error {
		_, err := tx.Exec(ctx, `insert into effects values ('one')`)
		return err
	})
	for name, id := range map[string]string{
		"too long for an index":     strings.Repeat("x", 5000),
		"what text cannot hold":     `e\u0000`,
		"as long as it may be, too": strings.Repeat("x", 255),
	} {
		t.Run(name, func(t *testing.T) {
			s := shared.emptied(t)
			s.WantAnswer(`{"id":"`+id+`","type":"paid","try":1}`, http.StatusOK)
			s.WantAnswer(`{"id":"`+id+`","type":"paid","try":2}`, http.StatusOK)
			s.WantAnswer(`{"id":"`+id+`2","type":"paid"}`, http.StatusOK)
			s.WantEffects(2)
			if all, _, err := operator.New(s.First, "").Conflicts(t.Context(), 100); err != nil || len(all) != 1 {
				t.Errorf("Conflicts = %v, %v, want one", all, err)
			}
		})
	}
}

func TestEventThatDoesNotDecodeIsParkedUnhandledByAnyone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	body := `{"id":"e1","type":"paid","order":7}`
	e := idem.Event{ID: "e1", Type: "paid", Payload: []byte(body)}
	outcome, err := s.First.Accept(t.Context(), e)
	if outcome != idem.Parked || err != nil {
		t.Errorf("Accept = %s, %v, want parked", outcome, err)
	}
	s.WantEffects(0)
	s.WantState("e1", idem.StateParked)
	s.WantPayload("e1", body)
	if reason := queryOne[string](s, `select last_error from idem_events`); !strings.Contains(reason, "order") {
		t.Errorf("the stored reason does not name the field: %s", reason)
	}
}

func TestWhatIsNotADeliveryIsRejected(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.First.MaxBody = 100
	for name, c := range map[string]struct {
		method, body string
		header       map[string]string
		want         int
		answer       string
	}{
		"GET":                     {"GET", "", nil, 405, `{"received":false}`},
		"PUT":                     {"PUT", paid("e1"), nil, 405, `{"received":false}`},
		"one byte over the limit": {"POST", paid(strings.Repeat("e", 101-len(paid("")))), nil, 413, `{"received":false,"reason":"body_too_large"}`},
		"missing token":           {"POST", paid("e1"), map[string]string{"token": ""}, 401, `{"received":false,"reason":"missing_token"}`},
		"wrong token":             {"POST", paid("e1"), map[string]string{"token": "wrong"}, 401, `{"received":false,"reason":"wrong_token"}`},
		"no token configured":     {"POST", paid("e1"), map[string]string{"token": "none"}, 503, `{"received":false,"reason":"not_configured"}`},
		"token cannot be checked": {"POST", paid("e1"), map[string]string{"token": "unsure"}, 503, `{"received":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, chunked := range []bool{false, true} {
				r, err := http.NewRequestWithContext(t.Context(), c.method, s.URL, strings.NewReader(c.body))
				if err != nil {
					t.Fatal(err)
				}
				if chunked {
					r.ContentLength = -1
				}
				r.Header.Set("token", "right")
				for k, v := range c.header {
					r.Header.Set(k, v)
				}
				resp, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				answer := new(strings.Builder)
				if err := resp.Write(answer); err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != c.want || !strings.HasSuffix(answer.String(), c.answer) {
					t.Errorf("chunked=%t: answered %s, want %d %s", chunked, answer, c.want, c.answer)
				}
			}
		})
	}
	if got := queryOne[int](s, `select count(*) from idem_events`); got != 0 {
		t.Errorf("%d events are stored", got)
	}
}

func TestBodyOfTheLargestSizeIsAccepted(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.First.MaxBody = int64(len(paid("e1")))
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantEffects(1)
}

func TestPayloadOfDoneEventsIsKeptWhenAsked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.First.KeepPayloads = true
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantPayload("e1", paid("e1"))
}

func TestLogsCarryNoBodies(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no") })
	secret := `{"id":"e1","type":"paid","order":"secret-order","cpf":"secret-cpf"}`
	s.Deliver(secret)
	s.Deliver(`{"id":"e2","type":"new","cpf":"secret-cpf"}`)
	_, _, _ = s.Post(t.Context(), secret, map[string]string{"token": "secret-token"})
	if log := s.Logged(); strings.Contains(log, "secret") {
		t.Error("the log tells secrets:\n" + log)
	}
	if log := s.Logged(); !strings.Contains(log, "id=e1") || !strings.Contains(log, "type=paid") || !strings.Contains(log, "outcome=retrying") {
		t.Error("the log does not name the event:\n" + log)
	}
}

// What is observed says of which provider it is, also of what is refused, and tells
// deliveries from attempts.
func TestObservationsNameTheirSourceAndStage(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.On(pay)
	var got []string
	observe := func(_ context.Context, o idem.Observation) {
		got = append(got, fmt.Sprintf("%s %s %s", o.Source, o.Stage, o.Outcome))
	}
	s.First.Observe, s.Inbox.Observe = observe, observe
	s.First.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if _, _, err := s.Post(t.Context(), paid("e1"), map[string]string{"token": "guess"}); err != nil {
		t.Fatal(err)
	}
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantAnswer(`{"id":"n1","type":"new"}`, http.StatusOK)
	s.Store(letter("e2", "o2", 0))
	s.Drain()
	s.Deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
	s.First.Observe = observe
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	want := []string{
		"notes delivery rejected", "notes delivery refused", "notes delivery done", "notes delivery unhandled",
		"notes delivery pending", "notes attempt done", "notes attempt done",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("observed (-want +got):\n" + diff)
	}
}

// What is stored for a replay, and what another run of the handler gets, is what was
// received, whatever a handler does to its copy.
func TestHandlerThatChangesThePayloadChangesItsCopyOnly(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.First.KeepPayloads = true
	again, failing := false, true
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		e, _ := idem.EventFrom(ctx)
		if string(e.Payload) != paid("e1") {
			t.Errorf("the handler got %s", e.Payload)
		}
		clear(e.Payload)
		if !again { // Postgres asks to run it again
			again = true
			_, err := tx.Exec(ctx, `do $$ begin raise exception using errcode = '40001'; end $$`)
			return err
		}
		if failing {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	s.openInbox()
	s.Inbox.MaxAttempts = 1
	s.Store(identify([]byte(paid("e1"))))
	s.Drain(1)
	s.WantState("e1", idem.StateParked)
	s.WantPayload("e1", paid("e1"))
	failing = false
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	s.WantPayload("e1", paid("e1"))
	s.WantEffects(1)
}

func TestWrongRegistrationPanicsAndSaysWhy(t *testing.T) {
	t.Parallel()
	all := func(string) bool { return true }
	for name, c := range map[string]struct {
		register func(*idem.Routes)
		says     string
	}{
		"twice":                 {func(r *idem.Routes) { idem.Handle(r, "paid", nothing); idem.Handle(r, "paid", nothing) }, `"paid" has a handler already`},
		"nil":                   {func(r *idem.Routes) { idem.Handle[note](r, "paid", nil) }, `handler for "paid" is nil`},
		"after the first event": {func(r *idem.Routes) { _, _ = r.Route(idem.Event{}); idem.Handle(r, "paid", nothing) }, "before the first event"},
		"ignored and handled":   {func(r *idem.Routes) { r.Ignore("paid"); idem.Handle(r, "paid", nothing) }, "or is ignored"},
		"handled and ignored":   {func(r *idem.Routes) { idem.Handle(r, "paid", nothing); r.Ignore("paid") }, "has a handler"},
		"a family twice": {func(r *idem.Routes) {
			idem.HandleFamily(r, []string{"paid"}, nothing)
			idem.HandleFamily(r, []string{"paid"}, nothing)
		}, `"paid" has a handler for all events`},
		"a family's nil":   {func(r *idem.Routes) { idem.HandleFamily[note](r, []string{"paid"}, nil) }, "is nil"},
		"others twice":     {func(r *idem.Routes) { idem.HandleOthers(r, all, nothing); idem.HandleOthers(r, all, nothing) }, "registered already"},
		"others nil":       {func(r *idem.Routes) { idem.HandleOthers[note](r, all, nil) }, "is nil"},
		"ignored too late": {func(r *idem.Routes) { _, _ = r.Route(idem.Event{}); r.Ignore("paid") }, "before the first event"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, c.says) {
					t.Errorf("panic %q, want one that says %q", said, c.says)
				}
			}()
			c.register(&idem.Routes{})
		})
	}
}

func TestRouteFindsTheHandlerOfItsType(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	var ran []string
	handler := func(name string) idem.Handler[*note] {
		return func(_ context.Context, _ pgx.Tx, n *note) error { ran = append(ran, name+" "+n.ID); return nil }
	}
	idem.Handle(&r, "paid", handler("paid"))
	idem.HandleOthers(&r, func(eventType string) bool { return eventType != "refused" }, handler("others"))
	r.Ignore("viewed")
	for _, c := range []struct {
		eventType, body string
		want            error
	}{
		{"paid", `{"id":"1"}`, nil},
		{"new", `{"id":"2"}`, nil},
		{"viewed", `{"id":"3"}`, nil},
		{"refused", `{"id":"4"}`, idem.ErrUnhandled},
	} {
		if err := idem.Dispatch(t.Context(), nil, &r, idem.Event{Type: c.eventType, Payload: []byte(c.body)}); !errors.Is(err, c.want) {
			t.Errorf("Dispatch(%s) = %v, want %v", c.eventType, err, c.want)
		}
	}
	if err := idem.Dispatch(t.Context(), nil, &r, idem.Event{Type: "paid", Payload: []byte(`{"id":5}`)}); err == nil {
		t.Error("an event that does not decode was dispatched")
	}
	if diff := cmp.Diff([]string{"paid 1", "others 2"}, ran); diff != "" {
		t.Error("handlers that ran (-want +got):\n" + diff)
	}
}

func TestAFamilysHandlerRunsBeforeTheTypesOwn(t *testing.T) {
	t.Parallel()
	errFails := errors.New("no such order")
	for name, c := range map[string]struct {
		eventType string
		failing   string
		ran       []string
		want      error
	}{
		"both":                     {eventType: "paid", ran: []string{"family", "own"}},
		"only the family's":        {eventType: "created", ran: []string{"family"}},
		"ignored beforehand":       {eventType: "viewed"},
		"ignored afterwards":       {eventType: "opened"},
		"the family's fails":       {eventType: "paid", failing: "family", ran: []string{"family"}, want: errFails},
		"the type's own fails":     {eventType: "paid", failing: "own", ran: []string{"family", "own"}, want: errFails},
		"not of the family":        {eventType: "new", ran: []string{"others"}},
		"of a struct of one's own": {eventType: "refunded", ran: []string{"family", "raw"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r idem.Routes
			var ran []string
			var given *note
			handler := func(name string) idem.Handler[*note] {
				return func(_ context.Context, _ pgx.Tx, n *note) error {
					if given != nil && given != n {
						t.Errorf("%s got an event that was decoded a second time", name)
					}
					given, ran = n, append(ran, name)
					if name == c.failing {
						return errFails
					}
					return nil
				}
			}
			r.Ignore("viewed")
			idem.Handle(&r, "paid", handler("own"))
			idem.Handle(&r, "refunded", func(_ context.Context, _ pgx.Tx, raw *json.RawMessage) error {
				ran = append(ran, "raw")
				return nil
			})
			idem.HandleFamily(&r, []string{"created", "paid", "viewed", "opened", "refunded"}, handler("family"))
			r.Ignore("opened")
			idem.HandleOthers(&r, func(string) bool { return true }, handler("others"))
			if err := idem.Dispatch(t.Context(), nil, &r, idem.Event{Type: c.eventType, Payload: []byte(`{"id":"1"}`)}); !errors.Is(err, c.want) {
				t.Errorf("Dispatch = %v, want %v", err, c.want)
			}
			if diff := cmp.Diff(c.ran, ran); diff != "" {
				t.Error("handlers that ran (-want +got):\n" + diff)
			}
		})
	}
}

// A handler may change what it is given: another run of the same event must not
// see that.
func TestEachRunGetsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	idem.Handle(&r, "paid", func(_ context.Context, _ pgx.Tx, n *note) error {
		if n.Order != "o1" {
			t.Errorf("the handler got order %q", n.Order)
		}
		n.Order = "changed"
		return nil
	})
	for range 2 {
		if err := idem.Dispatch(t.Context(), nil, &r, identify([]byte(paid("e1")))); err != nil {
			t.Error(err)
		}
	}
}

func TestTypesListWhatToSubscribeTo(t *testing.T) {
	t.Parallel()
	var r idem.Routes
	idem.Handle(&r, "paid", nothing)
	idem.Handle(&r, "created", nothing)
	idem.HandleFamily(&r, []string{"paid", "refunded", "viewed", "opened"}, nothing)
	r.Ignore("viewed", "opened")
	if diff := cmp.Diff([]string{"created", "paid", "refunded"}, r.Types()); diff != "" {
		t.Error("(-want +got):\n" + diff)
	}
	if !r.Handles("paid") || !r.Handles("refunded") || r.Handles("viewed") || !r.Ignores("viewed") {
		t.Error("Handles does not tell what has a handler")
	}
}

func TestAnEventPrintsItsNamesAndNeverItsBody(t *testing.T) {
	t.Parallel()
	const person = "Ana"
	at := time.Date(2026, 11, 2, 3, 4, 5, 0, time.UTC)
	event := idem.Event{Source: "notes", Scope: "shop", ID: "e1\x1b", Type: "paid", Key: "o1", OccurredAt: at, Payload: []byte(person)}
	stored := idem.StoredEvent{Event: event, State: idem.StateParked, Attempts: 3, LastError: "no order of " + person, ReceivedAt: at}
	const names = `{Source:"notes" Scope:"shop" ID:"e1\x1b" Type:"paid" Key:"o1" OccurredAt:2026-11-02T03:04:05Z Payload:3 bytes}`
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, c := range []struct {
			why  string
			what any
			want string
		}{
			{"an event", event, names},
			{"its address", &event, names},
			{"a stored one", stored, "{" + names + " State:parked Attempts:3 Crashes:0 ReceivedAt:2026-11-02T03:04:05Z}"},
		} {
			if diff := cmp.Diff(c.want, fmt.Sprintf(verb, c.what)); diff != "" {
				t.Errorf("%s with %s (-want +got):\n%s", c.why, verb, diff)
			}
		}
		for _, around := range []any{[]idem.Event{event}, map[string]idem.StoredEvent{"": stored}, struct{ E *idem.StoredEvent }{&stored}} {
			said := fmt.Sprintf(verb, around)
			for _, secret := range []string{person, fmt.Sprintf("%x", person), strings.Trim(fmt.Sprint([]byte(person)), "[]")} {
				if strings.Contains(said, secret) {
					t.Errorf("%s of %T: %s", verb, around, said)
				}
			}
		}
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("looked", "event", event, "stored", stored, "address", &stored)
	}
	if said := log.String(); strings.Contains(said, person) || strings.Count(said, "parked") != 4 || strings.Count(said, `notes`) != 6 {
		t.Error(said)
	}
}

func nothing(context.Context, pgx.Tx, *note) error { return nil }
