package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/internal/command"
)

// said is what a run of a command has come to.
type said struct {
	Status   int
	Out, Err string
}

// settings are what the flags of the command under test say.
type settings struct {
	loud, json bool
	count      int
	since      time.Time
	every      time.Duration
	types      []string
}

// shop is a command with three verbs. What the verb paint gets is what it prints.
func shop(s *settings) *command.Command {
	c := &command.Command{Name: "shop", Variables: []string{"SHOP_KEY the key of the shop", "SHOP_HOME where it lives"}}
	c.Flags = []command.Flags{c.JSON(&s.json, "print JSON"), func(f *flag.FlagSet) { f.BoolVar(&s.loud, "loud", false, "say more") }}
	c.Verbs = []command.Verb{
		{
			Name: "paint", Words: "WALL...", Needs: "a wall: shop walls prints them", About: "paint walls",
			More:      "It takes a while, and\nit is one paragraph.\n\nThis is another one, with a\n  line that stays    as it is\nand goes on.",
			Variables: []string{"SHOP_KEY"},
			Flags: []command.Flags{func(f *flag.FlagSet) {
				f.IntVar(&s.count, "count", 1, "paint `N` times")
				f.Func("since", "walls since a `time`", command.Time(&s.since, time.UTC))
				f.Func("every", "rest for this `time`", command.Duration(&s.every))
				f.Func("type", "this `type` of paint", command.List(&s.types))
				f.Bool("a-flag-with-a-name-that-is-long", false, "and its text")
			}},
			Run: func(_ context.Context, words []string) error {
				fmt.Fprintf(c.Out, "%q loud=%t count=%d types=%q every=%s\n", words, s.loud, s.count, s.types, s.every)
				return nil
			},
		},
		{Name: "walls", About: "all walls", Run: func(context.Context, []string) error { return nil }},
		{Name: "wall", Words: "[WALL]", About: "one wall", Run: func(context.Context, []string) error { return nil }},
	}
	return c
}

func run(ctx context.Context, c *command.Command, args ...string) said {
	var out, err strings.Builder
	in, asks := c.In, c.Asks
	c.Use(nil, &out, &err)
	c.In, c.Asks = in, asks
	status := c.Run(ctx, args)
	return said{status, out.String(), err.String()}
}

func TestFlagsAndWordsComeInAnyOrder(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"paint north":                             `["north"] loud=false count=1 types=[] every=0s`,
		"paint -count 2 north --loud south":       `["north" "south"] loud=true count=2 types=[] every=0s`,
		"paint north --count=2 -loud=true":        `["north"] loud=true count=2 types=[] every=0s`,
		"-loud paint north":                       `["north"] loud=true count=1 types=[] every=0s`,
		"-loud paint -loud=false north":           `["north"] loud=false count=1 types=[] every=0s`,
		"paint -count 3 -- -count -h -- north":    `["-count" "-h" "--" "north"] loud=false count=3 types=[] every=0s`,
		"paint north -type a,b -type c -every 2d": `["north"] loud=false count=1 types=["a" "b" "c"] every=48h0m0s`,
	} {
		if diff := cmp.Diff(said{Out: want + "\n"}, run(t.Context(), shop(new(settings)), strings.Fields(line)...)); diff != "" {
			t.Errorf("shop %s (-want +got):\n%s", line, diff)
		}
	}
}

func TestMisuseExits2AndSaysWhatIsRightInALine(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"repair":                `there is no verb "repair": shop help prints them`,
		"help repair":           `there is no verb "repair": shop help prints them`,
		"-count 2 paint north":  "the verb comes first, then -count: shop help prints the verbs",
		"paint":                 "paint needs a wall: shop walls prints them",
		"walls north":           `"north" is too much: shop help walls prints what it takes`,
		"wall north south":      `"south" is too much: shop help wall prints what it takes`,
		"paint -colour north":   "flag provided but not defined: -colour: shop help paint prints the flags",
		"paint -count x north":  `invalid value "x" for flag -count: parse error: shop help paint prints the flags`,
		"paint -every 0 north":  `invalid value "0" for flag -every: it is no time such as 45d, 12h or 5s: shop help paint prints the flags`,
		"paint -every -3d n":    "it is no time such as 45d",
		"paint -every 213504d":  "it is no time such as 45d",
		"paint -since noon n":   "it is no time such as 2026-11-20T10:00:00Z or 2026-11-20, nor how long ago, such as 2h or 3d",
		"paint -since 213504d":  "nor how long ago",
		"paint -type a,,b n":    "it is empty",
		"paint -every 1s1 -- n": "it is no time",
	} {
		got := run(t.Context(), shop(new(settings)), strings.Fields(line)...)
		if got.Status != command.Misused || got.Out != "" || !strings.HasPrefix(got.Err, "shop: ") || !strings.Contains(got.Err, says) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("shop %s: %+v, want %q", line, got, says)
		}
	}
	if got := run(t.Context(), shop(new(settings))); got.Status != command.Misused || got.Out != "" || !strings.HasPrefix(got.Err, "usage: shop VERB") || !strings.HasSuffix(got.Err, "\nshop: give a verb: shop help VERB has all about one\n") {
		t.Errorf("without a verb: %+v", got)
	}
}

const help = `usage: shop paint [flags] WALL...

Paint walls.

It takes a while, and
it is one paragraph.

This is another one, with a
  line that stays    as it is
and goes on.

Flags:
  -a-flag-with-a-name-that-is-long
    	and its text
  -count N
    	paint N times (default 1)
  -every time
    	rest for this time
  -json
    	print JSON
  -loud
    	say more
  -since time
    	walls since a time
  -type type
    	this type of paint

Environment:
  SHOP_KEY  the key of the shop
`

func TestHelpIsOnStdout(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"help paint", "paint -h", "paint north -count 2 --help", "-h paint"} {
		if diff := cmp.Diff(said{Out: help}, run(t.Context(), shop(new(settings)), strings.Fields(line)...)); diff != "" {
			t.Errorf("shop %s (-want +got):\n%s", line, diff)
		}
	}
	got := run(t.Context(), shop(new(settings)), "help")
	for _, says := range []string{"\n  paint ", "\n  help VERB ", "\n  SHOP_HOME ", "\n  130  ended by Ctrl-C"} {
		if got.Status != command.Done || got.Err != "" || !strings.Contains(got.Out, says) {
			t.Errorf("it does not say %q:\n%s", says, got.Out)
		}
	}
}

func TestVersionNeedsNoVerb(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "-version", "--version"} {
		if got := run(t.Context(), shop(new(settings)), arg); got.Status != command.Done || !regexp.MustCompile(`^shop \S+\n$`).MatchString(got.Out) {
			t.Errorf("%s: %+v", arg, got)
		}
	}
}

func TestEveryEndHasItsStatusAndItsText(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom\x1b[2J")
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("somebody ended it"))
	for _, test := range []struct {
		why  string
		ctx  context.Context
		err  error
		want said
	}{
		{"done", t.Context(), nil, said{}},
		{"a failure", t.Context(), boom, said{Status: 1, Err: "shop: boom\uFFFD[2J\n"}},
		{"misuse", t.Context(), fmt.Errorf("no: %w", command.Usage("give %d", 2)), said{Status: 2, Err: "shop: no: give 2\n"}},
		{"nothing", t.Context(), command.Error(command.Nothing, errors.New("no wall")), said{Status: 3, Err: "shop: no wall\n"}},
		{"attention, said already", t.Context(), command.Said(command.Attention), said{Status: 4}},
		{"ended by its context", canceled, fmt.Errorf("painting: %w", context.Canceled), said{Status: 130, Err: "shop: painting: somebody ended it\n"}},
		{"done all the same", canceled, nil, said{}},
		{"found before it ended", canceled, command.Said(command.Attention), said{Status: 4}},
	} {
		c := shop(new(settings))
		c.Verbs[1].Run = func(context.Context, []string) error { return test.err }
		if diff := cmp.Diff(test.want, run(test.ctx, c, "walls")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func TestAnErrorIsJSONOnStderr(t *testing.T) {
	t.Parallel()
	c := shop(new(settings))
	c.Verbs[1].Run = func(context.Context, []string) error { return errors.New("boom\x1b\u202e") }
	for _, args := range [][]string{{"walls", "-json"}, {"-json", "walls"}, {"walls", "--json"}, {"walls", "-json", "-nonsense"}} {
		got := run(t.Context(), c, args...)
		var failure struct {
			Error  string
			Status int
		}
		if err := json.Unmarshal([]byte(got.Err), &failure); err != nil || failure.Status != got.Status || failure.Error == "" || got.Out != "" || strings.ContainsAny(got.Err, "\x1b\u202e") {
			t.Errorf("%q: %+v, %v", args, got, err)
		}
	}
}

func TestAQuestionIsAnsweredByAPersonOrNothingIsChanged(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why, typed string
		asks       bool
		want       said
	}{
		{"yes", "y\n", true, said{Out: "painted", Err: "Paint? [y/N] "}},
		{"YES", " YES \r\n", true, said{Out: "painted", Err: "Paint? [y/N] "}},
		{"yes, and the end of the input", "y", true, said{Out: "painted", Err: "Paint? [y/N] "}},
		{"the default", "\n", true, said{Status: 1, Err: "Paint? [y/N] shop: nothing was changed: the answer was not y\n"}},
		{"no clear yes", "yeah\n", true, said{Status: 1, Err: "Paint? [y/N] shop: nothing was changed: the answer was not y\n"}},
		{"no", "n\n", true, said{Status: 1, Err: "Paint? [y/N] shop: nothing was changed: the answer was not y\n"}},
		{"nobody is there", "y\n", false, said{Status: 2, Err: "shop: nothing was changed: nobody is at a terminal to confirm it: give -yes\n"}},
		{"the terminal is closed", "", true, said{Status: 2, Err: "Paint? [y/N] \nshop: nothing was changed: nobody is at a terminal to confirm it: give -yes\n"}},
	} {
		c := shop(new(settings))
		c.In, c.Asks = strings.NewReader(test.typed), test.asks
		c.Verbs[1].Run = func(ctx context.Context, _ []string) error {
			if err := c.Confirm(ctx, "Paint?"); err != nil {
				return err
			}
			_, err := fmt.Fprint(c.Out, "painted")
			return err
		}
		if diff := cmp.Diff(test.want, run(t.Context(), c, "walls")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, typist := io.Pipe() // never writes
	defer typist.Close()
	c := shop(new(settings))
	c.In, c.Asks = in, true
	ctx, cancel := context.WithCancelCause(t.Context())
	c.Verbs[1].Run = func(ctx context.Context, _ []string) error {
		cancel(errors.New("interrupt signal received"))
		return c.Confirm(ctx, "Sure?")
	}
	want := said{Status: command.Interrupted, Err: "Sure? [y/N] \nshop: nothing was changed: interrupt signal received\n"}
	if diff := cmp.Diff(want, run(ctx, c, "walls")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheStatusSaysWhichSignalItWas(t *testing.T) {
	t.Parallel()
	for s, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestChildThatWaits$")
		child.Env = append(os.Environ(), "COMMAND_TEST_WAITS=1")
		var complaints strings.Builder
		child.Stderr = &complaints
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		if err := child.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // the status says it
		if got, says := child.ProcessState.ExitCode(), "shop: waiting: "+s.String()+" signal received\n"; got != want || complaints.String() != says {
			t.Errorf("%s: exit status %d, want %d; it says %q, want %q", s, got, want, &complaints, says)
		}
	}
}

// TestChildThatWaits is a process of its own, which waits for a signal.
func TestChildThatWaits(t *testing.T) {
	if os.Getenv("COMMAND_TEST_WAITS") == "" {
		return
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // as if it was not started below nohup, which ignores it
	c := shop(new(settings))
	c.Use(os.Stdin, os.Stdout, os.Stderr)
	c.Verbs[1].Run = func(ctx context.Context, _ []string) error {
		fmt.Println("waits")
		<-ctx.Done()
		return fmt.Errorf("waiting: %w", ctx.Err())
	}
	command.Main(func(ctx context.Context) int { return c.Run(ctx, []string{"walls"}) })
}

// The table of the code is that of the documents, in English in translations, too, as help prints it.
func TestTheExitStatusesAreDocumented(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]*) \|`)
	for _, path := range []string{"docs/oncall.md", "docs/pt-BR/oncall.md"} {
		found := rows.FindAllStringSubmatch(read(path), -1)
		if len(found) != len(command.Statuses) {
			t.Fatalf("%s has %d exit statuses, want %d", path, len(found), len(command.Statuses))
		}
		for n, s := range command.Statuses {
			if got := found[n]; got[1] != fmt.Sprint(s.Status) || got[2] != s.Meaning {
				t.Errorf("%s has %q, want %d, %q", path, got[1:], s.Status, s.Meaning)
			}
		}
	}
}
