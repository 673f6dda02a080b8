package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// tickTime limits one look: Postgres may be unavailable for a while.
const tickTime = 10 * time.Second

// watch shows the backlogs until ctx ends, which is its ordinary end. One look is
// over before the next begins.
func (p *program) watch(ctx context.Context) error {
	for n := 1; ; n++ {
		looking, cancel := context.WithTimeout(ctx, tickTime)
		all, err := p.backlogs(looking)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		if writing := p.printTick(all, err); writing != nil {
			return writing
		}
		if n == p.times {
			if err != nil {
				return errSaid
			}
			return nil
		}
		if p.pause(ctx, p.every) != nil {
			return nil
		}
	}
}

// clearScreen has a terminal begin at the top, and forget its content.
const clearScreen = "\x1b[H\x1b[2J"

func (p *program) printTick(all []backlog, failed error) error {
	switch {
	case failed != nil:
		p.say("%s: idem: %s\n", p.at(p.now()), strings.ReplaceAll(failed.Error(), "idem: ", ""))
		return nil
	case p.json:
		return p.printBacklogs(all)
	case p.redraws:
		var screen strings.Builder // written at once, so that it does not flicker
		fmt.Fprintf(&screen, "%s%s\n\n", clearScreen, command.Text("%s, every %s; Ctrl-C ends it", p.at(p.now()), p.every.String()))
		err := p.printStats(&screen, all)
		_, writing := io.WriteString(p.Stdout, screen.String())
		return errors.Join(err, writing)
	}
	for _, b := range all {
		_, err := fmt.Fprintf(p.Stdout, "%s  %s  pending %s  retrying %s  unhandled %s  parked %s  blocked entities %d\n", p.at(p.now()), terminal.Clean(b.Source),
			b.Pending.text(), b.Retrying.text(), b.Unhandled.text(), b.Parked.text(), b.BlockedKeys)
		if err != nil {
			return err
		}
	}
	return nil
}
