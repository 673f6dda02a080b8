package queue

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestHelpIsNoMistake(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	a.env = nil // it needs no key
	for _, args := range [][]string{{"--help"}, {"help"}, {"-h", "--json"}} {
		status, out, complaints := a.queue(t, args...)
		if status != 0 || complaints != "" || !strings.HasPrefix(out, "usage: asaas-queue [flags] COMMAND [ID]\n") {
			t.Errorf("%v: exit status %d, prints %q, %q", args, status, out, complaints)
		}
		for _, want := range append(slices.Clone(names), "ASAAS_API_KEY", "DATABASE_URL", "-version", "exit status") {
			if !strings.Contains(out, want) {
				t.Errorf("%v does not tell of %s", args, want)
			}
		}
	}
	if status, _, complaints := a.queue(t, "help", "repair"); status != 2 || !strings.Contains(complaints, `there is no command "repair"`) {
		t.Errorf("exit status %d, %q", status, complaints)
	}
}

func TestEveryCommandHasHelpOfItsOwn(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, name := range names {
		status, out, complaints := a.queue(t, "help", name)
		_, same, _ := a.queue(t, name, "--help")
		c := commands[name]
		if status != 0 || complaints != "" || same != out || !strings.HasPrefix(out, "usage: asaas-queue [flags] "+name) || c.isAboutOne != strings.Contains(out, name+" ID\n") {
			t.Errorf("%s: exit status %d, prints %q, %q", name, status, out, complaints)
		}
		for _, flag := range []string{"yes", "force", "replay", "last-event", "handled", "every", "sandbox", "json"} {
			takes := slices.Contains(c.flags, flag) || slices.Contains(everywhere, flag)
			if strings.Contains(out, "\n  -"+flag) != takes {
				t.Errorf("the help on %s tells of --%s: %t", name, flag, !takes)
			}
		}
	}
	if len(names) != len(commands) {
		t.Errorf("%d of %d commands have help", len(names), len(commands))
	}
}

// What the code reads is what the help and the documentation tell.
func TestEveryVariableOfTheEnvironmentIsDocumented(t *testing.T) {
	t.Parallel()
	documented, err := os.ReadFile("../asaas-queue/main.go")
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`getenv\("([A-Z_]+)"\)`)
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range read.FindAllStringSubmatch(string(text), -1) {
			found++
			if variables[m[1]] == "" || !strings.Contains(string(documented), "\n//	"+m[1]) {
				t.Errorf("%s is not documented", m[1])
			}
		}
	}
	if found < 4 {
		t.Errorf("%d variables are read", found)
	}
}

func TestTheVersionIsPrinted(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	if status, out, _ := a.queue(t, "--version"); status != 0 || !regexp.MustCompile(`^asaas-queue \S+\n$`).MatchString(out) {
		t.Errorf("exit status %d, prints %q", status, out)
	}
}
