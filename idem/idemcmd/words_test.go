package idemcmd

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/lang"
	"github.com/paghooks/paghooks/internal/lang/langtest"
)

func TestWhatTheCommandPrintsIsInBothLanguages(t *testing.T) {
	t.Parallel()
	langtest.Whole(t, portuguese)
}

func TestHelpIsInBothLanguages(t *testing.T) {
	t.Parallel()
	p := &program{}
	langtest.Of(t, portugueseHelp, p.grammar().Texts())
	for text, translation := range portugueseHelp {
		if got, want := strings.Count(translation, "`"), strings.Count(string(text), "`"); got != want {
			t.Errorf("%q names %d values, its Portuguese %d", text, want/2, got/2)
		}
	}
}

func TestAPersonConfirmsInTheirLanguageAndProgramsReadErrorsInEnglish(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.lang = lang.Portuguese
	s.types = "n\n"
	s.wantSays(command.Failed, "Descartar este evento? [s/N]", "discard", "-reason", "teste", "bad_2")
	s.wantSays(command.Failed, "idem: nothing was changed: the answer was not y", "discard", "-reason", "teste", "bad_2")
	s.types = ""
	s.wantSays(command.Misused, "idem: nothing was changed: nobody is at a terminal to confirm it: give -yes", "discard", "-reason", "teste", "bad_2")
	s.wantSays(command.Nothing, "idem: no event matched", "show", "unknown")
	s.wantText(`select state from idem_events where event = 'notes//bad_2'`, "parked")
	s.types = "sim\n"
	s.wantSays(command.Done, "Descartar este evento? [s/N]", "discard", "-reason", "teste", "bad_2")
	s.wantText(`select state from idem_events where event = 'notes//bad_2'`, "discarded")
	s.lang, s.types = lang.English, "s\n"
	s.wantSays(command.Failed, "the answer was not y", "discard", "-reason", "a test", "bad_5&77")
}

func TestTheEnvironmentChoosesTheLanguage(t *testing.T) {
	t.Parallel()
	for locale, want := range map[string]string{"pt_BR.UTF-8": "uso: idem VERBO [flags]", "C": "usage: idem VERB [flags]"} {
		program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildThatHelps$")
		program.Env = append(os.Environ(), "IDEMCMD_TEST_HELPS=1", "LC_ALL="+locale)
		if out, err := program.Output(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("with LC_ALL=%s it says\n%s%v\nwant %s", locale, out, err, want)
		}
	}
}

// TestChildThatHelps is a process that prints help.
func TestChildThatHelps(t *testing.T) {
	if os.Getenv("IDEMCMD_TEST_HELPS") != "" {
		os.Args = []string{"idem", "help"}
		Main()
	}
}
