package browser

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "the folder in which TestScreenshots writes what the pages look like; else it only looks at them")

// maxScreenshot is the size of a file in bytes that documents bear.
const maxScreenshot = 150_000

func TestScreenshots(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	addresses := b.fill()
	for _, row := range []struct {
		name, begins, theme string // the address begins so
		width, height       int64
		reveal              bool
	}{
		{"overview-light", "", "light", 1200, 640, false},
		{"overview-dark", "", "dark", 1200, 640, false},
		{"events-light", "events?source=letters&boxes=all", "light", 1200, 640, false},
		{"events-narrow-dark", "events?", "dark", 390, 844, false},
		{"event-dark", "event?", "dark", 1200, 950, true},
		{"confirm-light", "confirm?source=letters&action=discard", "light", 1200, 480, false},
		{"trail-light", "trail?", "light", 1200, 460, false},
	} {
		b.theme(row.theme)
		b.do(chromedp.EmulateViewport(row.width, row.height))
		b.open(addresses[slices.IndexFunc(addresses, func(a string) bool { return strings.HasPrefix(a, row.begins) })])
		if row.reveal {
			b.click("button", "Show with values masked")
		}
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if len(png) > maxScreenshot || len(png) < 5000 {
			t.Errorf("%s is %d bytes, want at most %d, and something on it", row.name, len(png), maxScreenshot)
		}
		if *screenshots == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(*screenshots, row.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
