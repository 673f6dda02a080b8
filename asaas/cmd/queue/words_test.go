package queue

import (
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/lang"
	"github.com/paghooks/paghooks/internal/lang/langtest"
)

func TestWhatTheCommandPrintsIsInBothLanguages(t *testing.T) {
	t.Parallel()
	langtest.Whole(t, portuguese)
}

func TestHelpIsInBothLanguages(t *testing.T) {
	t.Parallel()
	p := &program{getenv: func(string) string { return "" }}
	langtest.Of(t, portugueseHelp, p.grammar(t.Context()).Texts())
	for text, translation := range portugueseHelp {
		if got, want := strings.Count(translation, "`"), strings.Count(string(text), "`"); got != want {
			t.Errorf("%q names %d values, its Portuguese %d", text, want/2, got/2)
		}
	}
}

func TestOutputInPortugueseIsAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.lang = lang.Portuguese
	_, _, penalized, _ := a.webhooks()
	for name, args := range map[string][]string{
		"status.pt-BR.txt": {"status"}, "help.pt-BR.txt": {"help"}, "help_recover.pt-BR.txt": {"help", "recover"},
		"status.json": {"status", "-json"}, // is the same
	} {
		_, out, _ := a.queue(t, args...)
		golden(t, name, out)
	}
	no, yes := "n\n", "s\n"
	const question = "Remover a penalização, sem testar o receptor? [s/N] "
	if status, _, complaints := a.queueAnswering(t, &no, "remove-penalty", penalized); status != 1 || !strings.HasSuffix(complaints, question+"asaas-queue: nothing was changed: the answer was not y\n") {
		t.Errorf("exit status %d, %q", status, complaints)
	}
	if status, out, complaints := a.queueAnswering(t, &yes, "remove-penalty", penalized); status != 0 || !strings.Contains(complaints, question) || !strings.Contains(out, "a seguir: veja com status se as falhas diminuem") {
		t.Errorf("exit status %d, %q, %q", status, out, complaints)
	}
	if status, out, complaints := a.queue(t, "status", "-limit", "1"); status != 2 || out != "" || !strings.Contains(complaints, "flag provided but not defined") {
		t.Errorf("exit status %d, %q, %q", status, out, complaints)
	}
}
