package browser

import (
	"flag"
	"os"
	"path/filepath"
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
		name, address, theme string
		width, height        int64
		reveal               bool
	}{
		{"overview-light", addresses[0], "light", 1200, 640, false},
		{"overview-dark", addresses[0], "dark", 1200, 640, false},
		{"events-light", addresses[18], "light", 1200, 640, false},
		{"events-narrow-dark", addresses[1], "dark", 390, 844, false},
		{"event-dark", addresses[2], "dark", 1200, 950, true},
		{"confirm-light", addresses[8], "light", 1200, 480, false},
		{"trail-light", addresses[6], "light", 1200, 460, false},
	} {
		b.theme(row.theme)
		b.do(chromedp.EmulateViewport(row.width, row.height))
		b.open(row.address)
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
