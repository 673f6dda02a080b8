package health

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

const (
	lasting = time.Minute     // a restart of Postgres is over by then
	again   = 24 * time.Hour  // while the check still fails
	quiet   = 5 * time.Minute // a process that has just started knows nothing of its deliveries and handlers
	gone    = time.Hour       // of a check that no process has any more
)

// sight holds the findings of a look at health: the worst result of each check. Two parts may have checks of one name.
type sight map[store.NoticeKey]check.Result

func newSight(results ...[]check.Result) sight {
	s := sight{}
	for _, r := range slices.Concat(results...) {
		key := store.NoticeKey{Source: r.Source, Name: r.Name}
		if before, ok := s[key]; !ok || stateOf(r) > stateOf(before) {
			s[key] = r
		}
	}
	return s
}

// state is the state of a check. The worst is the highest.
type state int

const (
	well state = iota
	unknown
	failing
)

func stateOf(r check.Result) state {
	switch {
	case !r.Healthy:
		return failing
	case r.Unknown:
		return unknown
	}
	return well
}

// in returns the checks in a state.
func (s sight) in(state state) (keys []store.NoticeKey) {
	for key, r := range s {
		if stateOf(r) == state {
			keys = append(keys, key)
		}
	}
	return keys
}

// answering returns the check that a part answers, of each part: a Report has it only of parts that do not.
func (h *Health) answering() (all []check.Result) {
	for _, p := range h.parts {
		all = append(all, check.Result{Source: p.name, Name: "answer", Healthy: true, Says: "it answers"})
	}
	return all
}

// due is a notice that is to be told, and what to say.
type due struct {
	store.Notice
	result check.Result
}

// due returns the notices that are to be told now, causes first. settled reports whether this process has run for long
// enough to say that something is over.
func (s sight) due(notices []store.Notice, now time.Time, settled bool) (all []due) {
	for _, n := range notices {
		r, known := s[n.NoticeKey]
		unseen := now.Sub(n.Seen).Abs() // the clock may have been put back
		switch {
		case n.Reserved(now):
		case known && stateOf(r) == failing:
			told := !n.Told.IsZero() && n.Until.IsZero() && now.Sub(n.Told) < again
			if !told && now.Sub(n.Since) >= lasting && !s.explained(n, notices) {
				all = append(all, due{n, r})
			}
		case n.Told.IsZero() && n.Until.IsZero(): // nobody was told that it fails
		case known && stateOf(r) == well && settled && unseen >= quiet:
			all = append(all, due{n, r})
		case !known && unseen >= gone && !s.lacksPart():
			all = append(all, due{n, check.Result{Source: n.Source, Name: n.Name, Healthy: true, Says: "no process has this check any more"}})
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return cmp.Compare(diagnosis.Place(a.Name), diagnosis.Place(b.Name)) })
	return all
}

// lacksPart reports whether a part does not answer, so that its checks are missing.
func (s sight) lacksPart() bool {
	return slices.ContainsFunc(s.in(failing), func(key store.NoticeKey) bool { return key.Name == "answer" })
}

// explained reports whether n's check fails because of another one, which fails or of which nobody was told yet that it
// is over.
func (s sight) explained(n store.Notice, notices []store.Notice) bool {
	return slices.ContainsFunc(notices, func(o store.Notice) bool {
		open := !o.Told.IsZero() || stateOf(s[o.NoticeKey]) == failing
		return open && o.Source == n.Source && diagnosis.Explains(o.Name, n.Name)
	})
}

// notebook holds the notices: in Postgres, for all processes, and a copy here, which counts while alone is set.
type notebook struct {
	own   map[store.NoticeKey]note
	alone bool // Postgres has not taken what was last written
}

// note is a notice by the clock of this process.
type note struct {
	store.Notice
	alone bool // this process has told it, and Postgres has no record of that
}

// write writes down what was seen. It returns all notices, and the time by the clock of theirs; with an error, those of
// this process.
func (b *notebook) write(ctx context.Context, db *pgxpool.Pool, s sight) (all []store.Notice, now time.Time, err error) {
	b.writeOwn(s)
	if db != nil {
		err = pgtx.Ask(ctx, db, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			all, now, err = store.SeeNotices(ctx, conn, s.in(failing), s.in(unknown), b.toldAlone(), quiet)
			return err
		})
	}
	b.alone = db == nil || err != nil
	if !b.alone {
		b.copy(all, now)
		return all, now, nil
	}
	all = nil
	for _, n := range b.own {
		all = append(all, n.Notice)
	}
	return all, time.Now(), err
}

// writeOwn does for the own notices what [store.SeeNotices] does for those in Postgres.
func (b *notebook) writeOwn(s sight) {
	now := time.Now()
	if b.own == nil {
		b.own = make(map[store.NoticeKey]note)
	}
	for key, n := range b.own {
		if n.Told.IsZero() && n.Until.IsZero() && now.Sub(n.Seen) > quiet {
			delete(b.own, key)
		}
	}
	for key, r := range s {
		n, ok := b.own[key]
		if !ok && stateOf(r) == failing {
			n = note{Notice: store.Notice{NoticeKey: key, Since: now}}
		}
		if stateOf(r) == failing || ok && stateOf(r) == unknown {
			n.Seen = now
			b.own[key] = n
		}
	}
}

func (b *notebook) toldAlone() (told []store.Notice) {
	for _, n := range b.own {
		if n.alone {
			told = append(told, n.Notice)
		}
	}
	return told
}

// copy makes the notices of Postgres the own ones, by the clock of this process.
func (b *notebook) copy(all []store.Notice, now time.Time) {
	here := time.Now()
	shift := func(t *time.Time) {
		if !t.IsZero() {
			*t = here.Add(t.Sub(now))
		}
	}
	clear(b.own)
	for _, n := range all {
		shift(&n.Since)
		shift(&n.Seen)
		shift(&n.Told)
		shift(&n.Until)
		b.own[n.NoticeKey] = note{Notice: n}
	}
}

// reserve reserves a notice that write has returned; ok is false if another process did something with it since.
func (b *notebook) reserve(ctx context.Context, db *pgxpool.Pool, n store.Notice) (reserved store.Notice, ok bool, err error) {
	if !b.alone {
		err = pgtx.Ask(ctx, db, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
			n.Until, ok, err = store.ReserveNotice(ctx, conn, n)
			return err
		})
		return n, ok, err
	}
	own := b.own[n.NoticeKey]
	own.Until = time.Now().Add(store.NoticeTime)
	b.own[n.NoticeKey] = own
	return own.Notice, true, nil
}

// confirm notes that somebody was told of a notice that was reserved.
func (b *notebook) confirm(ctx context.Context, db *pgxpool.Pool, n store.Notice, over bool) error {
	if over {
		delete(b.own, n.NoticeKey)
	} else {
		own := b.own[n.NoticeKey]
		own.Told, own.Until, own.alone = time.Now(), time.Time{}, b.alone
		b.own[n.NoticeKey] = own
	}
	if b.alone {
		return nil
	}
	return pgtx.Ask(ctx, db, func(ctx context.Context, conn *pgxpool.Conn) error { return store.ConfirmNotice(ctx, conn, n, over) })
}
