package main

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFlagsSayWhatToDo(t *testing.T) {
	t.Parallel()
	var said strings.Builder
	c, err := parse(strings.Fields("-mode inbox,hand -at 8 -for 10m -duplicates 12.5% -concurrent 0% -rtt 1ms -against http://u:secret@there/hook?token=secret -postgres postgres://u:secret@h/d"), &said)
	if err != nil {
		t.Fatal(err, said.String())
	}
	if !slices.Equal(c.modes, []string{"inbox", "hand", against}) || c.at != 8 || c.length != 10*time.Minute ||
		c.duplicates != 0.125 || c.concurrent != 0 || c.rtt != time.Millisecond {
		t.Errorf("read as %+v", c)
	}
	if strings.Contains(c.command, "secret") || !strings.Contains(c.command, " -duplicates=12.5% ") {
		t.Errorf("the command is reported as %s", c.command)
	}
}

func TestAnotherImplementationRunsAloneByDefault(t *testing.T) {
	t.Parallel()
	c, err := parse([]string{"-against", "http://localhost"}, t.Output())
	if err != nil || !slices.Equal(c.modes, []string{against}) || c.needsPostgres() {
		t.Errorf("the modes are %v, %v", c.modes, err)
	}
}

func TestMistakesOnTheCommandLineAreExplained(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, says, why string }{
		{"-mode inlin", `"inlin" is no mode`, "a typing error"},
		{"-mode inline,inline", "there twice", "a mode with itself"},
		{"-mode against", "is no mode", "against what?"},
		{"-duplicates 5", "it is a share", "5 of 1, or 5 of 100?"},
		{"-duplicates 101%", "it is a share", "more than all"},
		{"-concurrent NaN%", "it is a share", "no number"},
		{"-duplicates 95%", "at most 90%", "nothing to repeat"},
		{"-at 0", "at least 1", "no load"},
		{"-for 0s", "more than 0", "no time"},
		{"-against localhost:3000", "is no URL", "no scheme"},
		{"-against http://a:%zz/", "is no URL", "no port"},
		{"-ledger select", "-against", "a ledger of nobody"},
		{"inline", "flags only", "no flag"},
	} {
		var said strings.Builder
		if _, err := parse(strings.Fields(tt.args), &said); err == nil || !strings.Contains(said.String(), tt.says) {
			t.Errorf("%s: %s says %q, %v, want %q in it", tt.why, tt.args, said.String(), err, tt.says)
		}
	}
	if _, err := parse([]string{"-h"}, t.Output()); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h is %v", err)
	}
}
