// Package count counts the deliveries that are refused or fail, and the events that workers fail to process, for the
// checks of package health; and the failures of an outage, for the log.
package count

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Refusals counts, by path, the deliveries that were refused since the last genuine one.
type Refusals struct {
	mu      sync.Mutex
	paths   map[string]*refusedPath
	genuine time.Time // when the last genuine delivery came, to any path; at first, the time of NewRefusals
}

// NewRefusals returns a Refusals for deliveries from now on.
func NewRefusals() *Refusals { return &Refusals{genuine: time.Now()} }

// Paths returns the number of paths that have an entry of their own.
func (r *Refusals) Paths() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.paths)
}

// refusedPath is a path that deliveries come to: a webhook's, or an account's.
type refusedPath struct {
	secrets  int                   // refused for a secret that is not the application's
	provider int                   // refused although they came from the provider's addresses
	late     map[string]bool       // bodies that the right secret has signed, refused for their time; at most maxLate
	hint     string                // the hint of the last of these
	tokens   map[string]*sentToken // by the hash of a token that is not the application's; at most maxTokens
	genuine  time.Time             // when the last genuine delivery came; zero if none did
	pause    time.Duration         // the longest pause between two genuine deliveries
}

// maxPaths limits the paths that have an entry of their own: senders choose them where the application's
// pattern has a wildcard. All other paths share one entry.
const maxPaths = 1000

const otherPaths = "other paths"

// at returns the entry of a path. The caller holds the lock.
func (r *Refusals) at(path string) *refusedPath {
	if r.paths == nil {
		r.paths = make(map[string]*refusedPath)
	}
	if r.paths[path] == nil {
		if len(r.paths) >= maxPaths {
			path = otherPaths
		}
		if r.paths[path] == nil {
			r.paths[path] = new(refusedPath)
		}
	}
	return r.paths[path]
}

// Genuine notes that a genuine delivery has come.
func (r *Refusals) Genuine(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, now := r.at(path), time.Now()
	if !p.genuine.IsZero() {
		p.pause = max(p.pause, now.Sub(p.genuine))
	}
	p.genuine, p.secrets, p.provider, p.late, p.tokens = now, 0, 0, nil, nil
	r.genuine = now
}

// Silence returns the time since the last genuine delivery.
func (r *Refusals) Silence(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Sub(r.genuine)
}

// NoneSince reports whether no genuine delivery has come since a time that is not zero.
func (r *Refusals) NoneSince(at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.genuine.Before(at)
}

// sentToken counts the deliveries with one token.
type sentToken struct {
	n           int
	first, last time.Time
}

const (
	// maxTokens limits the tokens of a path that are counted each.
	maxTokens = 100
	// tokenLong is the time over which deliveries with one wrong token are not a stranger's guess: a provider's
	// first attempts take that long.
	tokenLong = 5 * time.Minute
)

// Refuse notes that a delivery was refused: for a secret that is not the application's, or although it came
// from the provider's addresses. Any other refused delivery is a stranger's, and is not counted. token is a
// hash of the token that was sent, or "".
func (r *Refusals) Refuse(path string, wrongSecret bool, token string, ofProvider bool) {
	if !wrongSecret && !ofProvider {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.at(path)
	if wrongSecret {
		p.secrets++
	}
	if token != "" {
		p.countToken(token)
	}
	if ofProvider {
		p.provider++
	}
}

func (p *refusedPath) countToken(token string) {
	now := time.Now()
	if p.tokens == nil || len(p.tokens) >= maxTokens && p.tokens[token] == nil { // a stranger's guesses: begin anew
		p.tokens = make(map[string]*sentToken)
	}
	if p.tokens[token] == nil {
		p.tokens[token] = &sentToken{first: now}
	}
	t := p.tokens[token]
	t.n, t.last = t.n+1, now
}

// repeated returns the largest number of deliveries with one token, among tokens that were sent for longer
// than tokenLong.
func (p *refusedPath) repeated() (most int) {
	for _, t := range p.tokens {
		if t.last.Sub(t.first) > tokenLong {
			most = max(most, t.n)
		}
	}
	return most
}

// Same returns the largest number of deliveries to a path that had one wrong token, since the last genuine one.
func (r *Refusals) Same() (most int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.paths {
		for _, t := range p.tokens {
			most = max(most, t.n)
		}
	}
	return most
}

// maxLate limits the bodies of a path that are counted each.
const maxLate = 100

// RefuseTime notes that a delivery that is signed with the right secret was refused because of its time. body
// identifies the body: a recorded delivery that is repeated counts once.
func (r *Refusals) RefuseTime(path, body, hint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.at(path)
	if p.late == nil {
		p.late = make(map[string]bool)
	}
	if p.hint = hint; len(p.late) < maxLate {
		p.late[body] = true
	}
}

// silentLong is the shortest time without a genuine delivery after which refused deliveries may be the
// missing ones.
const silentLong = 10 * time.Minute

// isSilent returns the time since the last genuine delivery. yes is false if none ever came, or if pauses of
// that length are usual for the path.
func (p *refusedPath) isSilent() (silent time.Duration, yes bool) {
	if p.genuine.IsZero() {
		return 0, false
	}
	silent = time.Since(p.genuine)
	return silent, silent >= silentLong && silent > 2*p.pause
}

// TokenChanged says what to do where the provider's deliveries are refused.
const TokenChanged = "see the reason in this application's log; if the token or the secret was changed, give it to both sides, before the provider stops its queue"

// Wrong says in words that at least limit of the provider's own deliveries were refused: they are signed with
// the right secret, come from the provider's addresses, or take the place of genuine deliveries. says is ""
// if there are fewer, and has the remedy where that is "". n counts all deliveries that were refused for their secret.
func (r *Refusals) Wrong(limit int) (n int, says, remedy string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(r.paths)) {
		p := r.paths[path]
		n += p.secrets
		if says != "" {
			continue
		}
		silent, isSilent := p.isSilent()
		remedy = TokenChanged
		switch {
		case len(p.late) >= limit:
			says, remedy = fmt.Sprintf("%d deliveries to %q since the last genuine one were %s", len(p.late), path, p.hint), ""
		case p.provider >= limit:
			says = fmt.Sprintf("%d deliveries in a row to %q came from the provider's addresses and were refused", p.provider, path)
		case p.repeated() >= limit:
			says = fmt.Sprintf("%d deliveries to %q were refused that all had the same wrong token, as after a change on one side only", p.repeated(), path)
		case p.secrets >= limit && isSilent:
			says = fmt.Sprintf("no genuine delivery has come to %q for %s, and %d were refused for their token or signature", path, silent.Round(time.Second), p.secrets)
		}
	}
	return n, says, remedy
}
