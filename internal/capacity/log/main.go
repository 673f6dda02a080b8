// Log prints how much Postgres writes to its log for an event, images of pages included,
// beside many events that are done. It starts a Postgres of its own:
//
//	go run ./internal/capacity/log
//	go run ./internal/capacity/log -rows 5000000 -events 30000
//	go run ./internal/capacity/log -json                        # what internal/capacity reads
//
// Events have ids as providers make them. Asaas's are those of ten types, and ascend
// within a type. Zelta Pay's are random.
package main

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
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
	"github.com/paghooks/paghooks/internal/postgres"
)

func main() {
	m := measurement{}
	flag.IntVar(&m.Rows, "rows", 1_500_000, "events that are done before")
	flag.IntVar(&m.Events, "events", 3000, "events between two checkpoints: a rate times checkpoint_timeout")
	flag.IntVar(&m.Body, "body", 2000, "bytes of an event's body")
	asJSON := flag.Bool("json", false, "print JSON instead of a table")
	flag.Parse()
	for _, ids := range []ids{{"ascending", ascending, ascendingSQL}, {"random", random, randomSQL}} {
		if err := m.measure(context.Background(), ids); err != nil {
			fmt.Fprintln(os.Stderr, "log:", err)
			os.Exit(1)
		}
	}
	if err := m.print(*asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "log:", err)
		os.Exit(1)
	}
}

func (m *measurement) print(asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(os.Stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(m)
	}
	fmt.Println("| ids | mode | bytes an event | images an event |\n|---|---|---|---|")
	for _, l := range m.Measured {
		fmt.Printf("| %s | %s | %.0f | %.2f |\n", l.IDs, l.Mode, l.Bytes, l.Images)
	}
	_, err := fmt.Printf("\nan event that is done takes %.0f bytes\n", m.Row)
	return err
}

// ids makes ids like a provider: in Go, and in SQL, of number n.
type ids struct {
	name string
	id   func(n int) string
	sql  string
}

// types is the number of types of events.
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

// measurement is a measurement and its result.
type measurement struct {
	Postgres string   `json:"postgres"`
	Rows     int      `json:"rows"`
	Events   int      `json:"events"`
	Body     int      `json:"body_bytes"`
	Row      float64  `json:"row_bytes"` // of a done event with its indexes, the larger of both kinds of ids
	Measured []logged `json:"measured"`
}

// logged is Postgres's log of an event, the body included where it is stored.
type logged struct {
	IDs    string  `json:"ids"`
	Mode   string  `json:"mode"`
	Bytes  float64 `json:"bytes_per_event"`
	Images float64 `json:"images_per_event"`
}

func (m *measurement) measure(ctx context.Context, by ids) (err error) {
	cluster := &postgres.Cluster{Durable: true, Settings: map[string]string{
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
from generate_series(1, $1::bigint) n`, m.Rows)
	if err == nil {
		_, err = pool.Exec(ctx, `vacuum analyze idem_events`)
	}
	var size float64
	if err == nil {
		err = pool.QueryRow(ctx, `select pg_total_relation_size('idem_events')`).Scan(&size)
	}
	m.Postgres, m.Row = cluster.Origin(), max(m.Row, size/float64(m.Rows))
	next := m.Rows + 1
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
		n := float64(m.Events)
		bytes, images := after.bytes-before.bytes, after.images-before.images
		m.Measured = append(m.Measured, logged{by.name, mode, bytes / n, images / n})
	}
	return nil
}

func typeOf(n int) string { return fmt.Sprint("TYPE_", n%types) }

// process has events processed, and returns when all are done.
func (m *measurement) process(ctx context.Context, pool *pgxpool.Pool, p *provider, mode string, by ids, next *int) error {
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
	last := *next + m.Events
	first := p.done.Load()
	var failure atomic.Pointer[error]
	numbers := make(chan int)
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			for n := range numbers {
				text := make([]byte, m.Body/2) // as hexadecimal digits: bodies have no long repetitions
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
	for p.done.Load()-first < int64(m.Events) {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	return <-ended
}

// usage is the amount that Postgres has written to its log.
type usage struct{ bytes, images float64 }

func look(ctx context.Context, pool *pgxpool.Pool) (u usage, err error) {
	time.Sleep(time.Second) // until every session has told its statistics
	err = pool.QueryRow(ctx, `select pg_current_wal_lsn() - '0/0', (select wal_fpi from pg_stat_wal)`).Scan(&u.bytes, &u.images)
	return u, err
}

// provider is a source of events without content.
type provider struct {
	idem.Routes
	done atomic.Int64
}

func (*provider) Name() string { return "provider" }

func (*provider) Open(*http.Request) (idem.Event, error) {
	return idem.Event{}, &idem.Refusal{Source: "provider", Reason: "none", Hint: "it receives nothing by HTTP"}
}
