package queue

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestHelpIsNoMistakeAndNeedsNoKey(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.env = nil
	for _, args := range [][]string{{"-help"}, {"help"}, {"-h", "-json"}} {
		status, out, complaints := a.queue(t, args...)
		if status != 0 || complaints != "" || !strings.HasPrefix(out, "usage: asaas-queue VERB [flags]\n") {
			t.Errorf("%v: exit status %d, prints %q, %q", args, status, out, complaints)
		}
		for _, v := range verbs {
			if !strings.Contains(out, "\n  "+v.name+" ") {
				t.Errorf("%v does not tell of %s", args, v.name)
			}
		}
	}
	if status, _, complaints := a.queue(t, "help", "repair"); status != 2 || !strings.Contains(complaints, `there is no verb "repair"`) {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}

func TestEveryVerbHasHelpOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, v := range verbs {
		status, out, complaints := a.queue(t, "help", v.name)
		_, same, _ := a.queue(t, v.name, "--help")
		if status != 0 || complaints != "" || same != out || !strings.HasPrefix(out, "usage: asaas-queue "+v.name+" [flags]") || v.isAboutOne != strings.Contains(out, v.name+" [flags] ID\n") {
			t.Errorf("%s: exit status %d, prints %q, %q", v.name, status, out, complaints)
		}
		for _, flag := range []string{"yes", "force", "replay", "last-event", "handled", "every", "sandbox", "json", "database"} {
			takes := slices.Contains(v.flags, flag) || flag == "sandbox" || flag == "json"
			if strings.Contains(out, "\n  -"+flag) != takes {
				t.Errorf("the help on %s tells of -%s: %t", v.name, flag, !takes)
			}
		}
	}
}

// What the documentation shows is what verbs take.
func TestEveryFlagIsDocumented(t *testing.T) {
	t.Parallel()
	documented, err := os.ReadFile("../asaas-queue/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range verbs {
		if !strings.Contains(string(documented), "\n//	"+v.name+" ") {
			t.Errorf("%s is not documented", v.name)
		}
		for _, flag := range append(slices.Clone(v.flags), "sandbox", "json") {
			if !strings.Contains(string(documented), "\n//	-"+flag+" ") {
				t.Errorf("-%s is not documented", flag)
			}
		}
	}
}

func TestTheVersionIsPrinted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, arg := range []string{"version", "--version"} {
		p, out, _ := a.program(nil)
		if status := p.run(t.Context(), []string{arg}); status != 0 || !regexp.MustCompile(`^asaas-queue \S+\n$`).MatchString(out.String()) {
			t.Errorf("%s: exit status %d, prints %q", arg, status, out)
		}
	}
}
