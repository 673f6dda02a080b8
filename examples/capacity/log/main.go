// Log prints how much Postgres writes to its log for an event, images of pages included,
// beside many events that are done. It starts a Postgres of its own:
//
//	go run ./examples/capacity/log
//	go run ./examples/capacity/log -rows 5000000 -events 30000
//
// Events have ids as providers make them. Asaas's are those of ten types, and ascend
// within a type. Zelta Pay's are random.
package main

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func main() {
	m := measurement{}
	flag.IntVar(&m.rows, "rows", 1_500_000, "events that are done before")
	flag.IntVar(&m.events, "events", 3000, "events between two checkpoints: a rate times checkpoint_timeout")
	flag.IntVar(&m.body, "body", 2000, "bytes of an event's body")
	flag.Parse()
	fmt.Println("| ids | mode | bytes an event | images an event |\n|---|---|---|---|")
	for _, ids := range []ids{{"as Asaas's", ascending, ascendingSQL}, {"random", random, randomSQL}} {
		if err := m.measure(context.Background(), ids); err != nil {
			fmt.Fprintln(os.Stderr, "log:", err)
			os.Exit(1)
		}
	}
}

// ids is how a provider makes ids: in Go, and in SQL, of number n.
type ids struct {
	name string
	id   func(n int) string
	sql  string
}

// types is how many types of events there are.
const types = 10

// ascending is the form of Asaas's ids: facts about real ones, not documented.
func ascending(n int) string {
	of := md5.Sum(fmt.Append(nil, "type", n%types))
	return fmt.Sprintf("evt_%s&%d", hex.EncodeToString(of[:]), 1_157_000_000+25*n)
}

const ascendingSQL = `'evt_' || md5('type' || n % 10) || '&' || 1157000000 + 25 * n`

func random(int) string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return "evt_" + hex.EncodeToString(id[:])
}

const randomSQL = `'evt_' || replace(gen_random_uuid()::text, '-', '')`

type measurement struct{ rows, events, body int }

func (m measurement) measure(ctx context.Context, by ids) (err error) {
	cluster := &idemtest.Cluster{Durable: true, Settings: map[string]string{
		"full_page_writes": "on", "fsync": "off", "checkpoint_timeout": "1h", "max_wal_size": "8GB",
	}}
	if err := cluster.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	pool, err := pgxpool.New(ctx, cluster.URL()+"&pool_max_conns=16")
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `
insert into idem_events (event, type, key, state, received_at, body_hash)
select 'provider//' || `+by.sql+`, 'TYPE_' || n % 10, 'pay_' || lpad(n::text, 16, '0'), 'done', now() - interval '1 day', n
from generate_series(1, $1::bigint) n`, m.rows)
	if err == nil {
		_, err = pool.Exec(ctx, `vacuum analyze idem_events`)
	}
	next := m.rows + 1
	p := &provider{}
	for n := range types {
		idem.Handle(&p.Routes, typeOf(n), func(context.Context, pgx.Tx, *struct{}) error { p.done.Add(1); return nil })
	}
	for _, mode := range []string{"inline", "inbox"} {
		var before, after usage
		for round := range 2 { // the first one is not counted
			if err == nil {
				_, err = pool.Exec(ctx, `checkpoint`)
			}
			if err == nil {
				before, err = look(ctx, pool)
			}
			if err == nil {
				err = m.process(ctx, pool, p, mode, by, &next)
			}
			if err == nil {
				after, err = look(ctx, pool)
			}
			if err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		n := float64(m.events)
		bytes, images := after.bytes-before.bytes, after.images-before.images
		fmt.Printf("| %s | %s | %.0f | %.2f |\n", by.name, mode, bytes/n, images/n)
	}
	return nil
}

func typeOf(n int) string { return fmt.Sprint("TYPE_", n%types) }

// process has events processed, and returns when all are done.
func (m measurement) process(ctx context.Context, pool *pgxpool.Pool, p *provider, mode string, by ids, next *int) error {
	processor, inbox := idem.NewProcessor(pool, p), idem.NewInbox(pool, p)
	working, stop := context.WithCancel(ctx)
	defer stop()
	accept, ended := processor.Accept, make(chan error, 1)
	if mode == "inbox" {
		accept = inbox.Accept
		go func() { ended <- inbox.Run(working) }()
	} else {
		ended <- nil
	}
	last := *next + m.events
	first := p.done.Load()
	var failure atomic.Pointer[error]
	numbers := make(chan int)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for n := range numbers {
				text := make([]byte, m.body/2) // as hexadecimal digits: bodies have no long repetitions
				_, _ = rand.Read(text)
				e := idem.Event{ID: by.id(n), Type: typeOf(n), Key: fmt.Sprintf("pay_%016d", n), OccurredAt: time.Now(), Payload: fmt.Appendf(nil, `{"text":"%x"}`, text)}
				if _, err := accept(ctx, e); err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	for ; *next < last; *next++ {
		numbers <- *next
	}
	close(numbers)
	senders.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	for p.done.Load()-first < int64(m.events) {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return <-ended
}

// usage is what Postgres has written to its log.
type usage struct{ bytes, images float64 }

func look(ctx context.Context, pool *pgxpool.Pool) (u usage, err error) {
	time.Sleep(time.Second) // until every session has told its statistics
	err = pool.QueryRow(ctx, `select pg_current_wal_lsn() - '0/0', (select wal_fpi from pg_stat_wal)`).Scan(&u.bytes, &u.images)
	return u, err
}

// provider is a source whose events have no content.
type provider struct {
	idem.Routes
	done atomic.Int64
}

func (*provider) Name() string { return "provider" }

func (*provider) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, &idem.Refusal{Source: "provider", Reason: "none", Hint: "it receives nothing by HTTP"}
}
