package console

import (
	"context"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/internal/lang"
)

// WaitForCounts has the overview wait for as long as counting takes.
func (h *Handler) WaitForCounts() { h.moment = time.Minute }

// HasHeadline reports whether the overview has a text for a check of health.
func HasHeadline(check string) bool { return headlines[check].says != "" }

// Pages are the names of all pages, with their methods.
func Pages() map[string]string {
	all := map[string]string{}
	for name, p := range pages {
		all[name] = p.method
	}
	return all
}

func TestEveryTextOfThePagesIsInPortuguese(t *testing.T) {
	t.Parallel()
	for glob, said := range map[string]*regexp.Regexp{
		"page/*.html": regexp.MustCompile(`(?:say|count \S+) (?:"([^"]+)"|` + "`([^`]+)`" + `)(?: "([^"]+)")?`),
		"*.go":        regexp.MustCompile(`(?:said\(v\.lang, |count\(v\.lang, [^"]+, |v\.say\(|refuse\([^",]+, |lang\.Text\(|Label: |: +\{)"([^"]+)"(?:,\s+"([^"]+ [^"]+)")?`),
	} {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files %s, %v", len(files), glob, err)
		}
		for _, file := range files {
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || file == "portuguese.go" {
				continue
			}
			for _, call := range said.FindAllStringSubmatch(string(page), -1) {
				for _, text := range call[1:] {
					if text != "" && portuguese[lang.Text(text)] == "" {
						t.Errorf("%s: %q has no Portuguese", file, text)
					}
				}
			}
		}
	}
}

func TestALongTextIsBrokenBehindSeparatorsAndCopiedAsItIs(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0af9", 9) + "b"
	for text, want := range map[string]string{
		"":                 "",
		"paid":             "paid",
		"PAYMENT_RECEIVED": "PAYMENT_<wbr>RECEIVED",
		"evt_1&2<b>":       "evt_<wbr>1&amp;<wbr>2&lt;b&gt;",
		"ids a.b; 3 by":    "ids a.<wbr>b;<wbr> 3 by",
		"x_":               "x_",
		hex:                `<span class="run">` + hex + "</span>",
		"evt_" + hex[:36]:  "evt_<wbr>" + hex[:36],
		"evt_" + hex:       `evt_<wbr><span class="run">` + hex + "</span>",
	} {
		got := string(long(text))
		if want = "<bdi>" + want + "</bdi>"; got != want {
			t.Errorf("long(%q) = %s, want %s", text, got, want)
		}
		if copied := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(got, "")); copied != text {
			t.Errorf("of %q one copies %q", text, copied)
		}
	}
}

func TestReadingsAreSharedKeptAndCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running := newRunning()
		defer running.close()
		var l latest[int]
		reads := 0
		look := func(wait time.Duration) (now, before reading[int]) {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			l.refresh(running, 5*time.Second, func(context.Context) (int, error) {
				time.Sleep(time.Second)
				reads++
				return 100 * reads, nil
			})
			return l.get(ctx)
		}
		want := func(when string, wait time.Duration, value, compared int) {
			t.Helper()
			if now, before := look(wait); now.Value != value || before.Value != compared {
				t.Errorf("%s it is %d, compared to %d, want %d and %d", when, now.Value, before.Value, value, compared)
			}
		}
		want("before anything is read", time.Millisecond, 0, 0)
		want("read by another meanwhile", time.Minute, 100, 0)
		want("while it is fresh", time.Minute, 100, 0)
		time.Sleep(6 * time.Second)
		want("while it would be read more than a tenth of the time", time.Minute, 100, 0)
		time.Sleep(5 * time.Second)
		want("while it is read again", time.Millisecond, 100, 0)
		want("when it is read again", time.Minute, 200, 100)
		l.forget()
		want("after an action", time.Minute, 300, 100)
		time.Sleep(time.Hour)
		want("after an hour", time.Minute, 400, 300)
		running.close()
		time.Sleep(time.Hour)
		want("when the page is closed", time.Minute, 400, 300)
	})
}

// A reading that waits for Postgres in vain takes a minute.
func TestAReadingThatFailedIsReadAgainSoonAfterTheOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running := newRunning()
		defer running.close()
		var l latest[int]
		isDown, reads := true, 0
		look := func() reading[int] {
			l.refresh(running, 5*time.Second, func(ctx context.Context) (int, error) {
				reads++
				if isDown {
					<-ctx.Done()
					return 0, ctx.Err()
				}
				return 7, nil
			})
			now, _ := l.get(t.Context())
			return now
		}
		if now := look(); now.Err == nil || now.took != readTime {
			t.Fatalf("the reading took %s, %v, want its whole time", now.took, now.Err)
		}
		isDown = false
		time.Sleep(readTime)
		if now := look(); now.Err == nil || reads != 1 {
			t.Errorf("%d readings, want a pause as long as the one that failed", reads)
		}
		time.Sleep(time.Second)
		if now := look(); now.Err != nil || now.Value != 7 {
			t.Errorf("%s after the end of the outage it is %d, %v", readTime+time.Second, now.Value, now.Err)
		}
	})
}

func TestChangeIsAMinutes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		n    int64
		in   time.Duration
		want int64
	}{{-600, 30 * time.Second, -1200}, {7, time.Minute, 7}, {5, 0, 300}} {
		if got := perMinute(row.n, row.in); got != row.want {
			t.Errorf("%d in %s is %d a minute, want %d", row.n, row.in, got, row.want)
		}
	}
}
