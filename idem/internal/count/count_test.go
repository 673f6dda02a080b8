package count_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem/internal/count"
)

// step is a delivery to /hook after a pause.
type step struct {
	after                   time.Duration
	genuine                 bool
	wrongSecret, ofProvider bool
	token                   string
}

func TestRefusedDeliveriesAreTheProvidersWhereTheyTakeThePlaceOfGenuineOnes(t *testing.T) {
	t.Parallel()
	genuine, wrong, ofProvider := step{genuine: true}, step{wrongSecret: true}, step{ofProvider: true}
	old := func(after time.Duration) step { return step{after: after, wrongSecret: true, token: "the old one"} }
	guess := func(token string) step { return step{wrongSecret: true, token: token} }
	late := func(s step, after time.Duration) step { s.after = after; return s }
	for name, c := range map[string]struct {
		steps []step
		n     int
		says  string // "" for nothing
	}{
		"none":                            {},
		"strangers' before any genuine":   {steps: []step{wrong, wrong, wrong}, n: 3},
		"strangers' beside genuine ones":  {steps: []step{genuine, wrong, wrong, wrong}, n: 3},
		"for another reason":              {steps: []step{genuine, {after: time.Hour}, {}, {}}},
		"instead of genuine ones":         {steps: []step{genuine, late(wrong, 10*time.Minute), wrong, wrong}, n: 3, says: `no genuine delivery has come to "/hook" for 10m0s`},
		"too few of them":                 {steps: []step{genuine, late(wrong, 10*time.Minute), wrong}, n: 2},
		"a genuine one comes again":       {steps: []step{genuine, late(wrong, 10*time.Minute), wrong, wrong, genuine}},
		"in a pause that is usual":        {steps: []step{genuine, late(genuine, time.Hour), late(wrong, 2*time.Hour), wrong, wrong}, n: 3},
		"in a pause that is longer":       {steps: []step{genuine, late(genuine, time.Hour), late(wrong, 2*time.Hour+1), wrong, wrong}, n: 3, says: "for 2h0m0s"},
		"from the provider's addresses":   {steps: []step{ofProvider, ofProvider, ofProvider}, says: "came from the provider's addresses"},
		"too few from these to be a pity": {steps: []step{ofProvider, ofProvider}},
		"one token again and again, after a night": {
			steps: []step{genuine, late(genuine, 14*time.Hour), old(time.Hour), old(time.Minute), old(4*time.Minute + 1)}, n: 3, says: "the same wrong token",
		},
		"the same at the first attempts, within five minutes": {steps: []step{genuine, old(0), old(time.Minute), old(4 * time.Minute)}, n: 3},
		"one token again and again, beside guesses":           {steps: []step{old(0), guess("a"), old(time.Minute), guess("b"), old(time.Hour)}, n: 5, says: "the same wrong token"},
		"guesses for hours":     {steps: []step{guess("a"), late(guess("b"), time.Hour), late(guess("c"), time.Hour)}, n: 3},
		"a genuine one between": {steps: []step{old(0), old(time.Minute), genuine, old(time.Hour), old(time.Hour)}, n: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := count.NewRefusals()
				for _, s := range c.steps {
					time.Sleep(s.after)
					if s.genuine {
						r.Genuine("/hook")
					} else {
						r.Refuse("/hook", s.wrongSecret, s.token, s.ofProvider)
					}
				}
				n, says, _ := r.Wrong(3)
				if n != c.n || (says != "") != (c.says != "") || !strings.Contains(says, c.says) {
					t.Errorf("Wrong = %d, %q, want %d, %q", n, says, c.n, c.says)
				}
			})
		})
	}
}

func TestDeliveriesWithOneWrongTokenAreCountedUntilAGenuineOneComes(t *testing.T) {
	t.Parallel()
	r := count.NewRefusals()
	want := func(n int) {
		t.Helper()
		if got := r.Same(); got != n {
			t.Errorf("%d had one wrong token, want %d", got, n)
		}
	}
	want(0)
	for _, token := range []string{"a", "b", "", "a"} {
		r.Refuse("/hook", true, token, false)
	}
	want(2)
	r.Genuine("/other")
	want(2)
	r.Genuine("/hook")
	want(0)
}

func TestSilenceBeginsWithTheProcessAndEndsWithAGenuineDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := count.NewRefusals()
		time.Sleep(time.Hour)
		r.Refuse("/hook", true, "", true)
		if silence := r.Silence(time.Now()); silence != time.Hour {
			t.Errorf("after an hour without a genuine delivery it is %s", silence)
		}
		r.Genuine("/hook")
		if silence := r.Silence(time.Now()); silence != 0 {
			t.Errorf("after a genuine delivery it is %s", silence)
		}
	})
}

func TestEventsThatFailAreCountedOnceUntilOneSucceeds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := new(count.Failures)
		want := func(n int) {
			t.Helper()
			if got := f.Since(time.Minute); got != n {
				t.Errorf("%d have failed in a row, want %d", got, n)
			}
		}
		want(0)
		f.Failed("a")
		f.Failed("a")
		f.Failed("b")
		want(2)
		time.Sleep(time.Minute)
		want(2)
		time.Sleep(time.Nanosecond)
		want(0) // too long ago
		for n := range 5000 {
			f.Failed(fmt.Sprint(n))
		}
		want(1000)
		f.Done()
		want(0)
	})
}

// A line for each delivery and each look of the workers would fill the disk of the machine on which they are read.
func TestAnOutageIsLoggedAtItsBeginOnceAMinuteAndAtItsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o count.Outages
		var said []int
		for range 150 { // a failure a second
			if says, more := o.Failed(); says {
				said = append(said, more)
			}
			if _, _, over := o.Done(); over {
				t.Error("it is over at a success between two failures")
			}
			time.Sleep(time.Second)
		}
		if len(said) != 3 || said[0] != 0 || said[1] != 59 || said[2] != 59 {
			t.Errorf("the lines say that so many failures were not logged: %v, want [0 59 59]", said)
		}
		time.Sleep(time.Second)
		if lasted, failures, over := o.Done(); !over || lasted != 149*time.Second || failures != 150 {
			t.Errorf("its end: %t, %s, %d failures", over, lasted, failures)
		}
		if _, _, over := o.Done(); over {
			t.Error("it ends twice")
		}
		if says, more := o.Failed(); !says || more != 0 {
			t.Errorf("the next one begins with %t, %d", says, more)
		}
	})
}
