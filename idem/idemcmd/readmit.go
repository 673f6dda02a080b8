package idemcmd

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/idem/relay"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// relaySecrets is the variable of the environment that has the relay's secrets.
const relaySecrets = "IDEM_RELAY_SECRETS"

func (p *program) readmit(ctx context.Context) error {
	secrets := strings.Fields(os.Getenv(relaySecrets))
	if len(secrets) == 0 {
		return command.Usage("%s is not set: set it in the environment to the relay's secret, to several with a space between", relaySecrets)
	}
	p.filter = idem.Filter{Types: []string{idem.SetAsideType}, States: []idem.State{idem.StateParked}}
	return p.carryOut(ctx, act{
		verb: "readmit", asks: "Readmit", what: "They would be verified again, and what is genuine would be stored for the workers, or processed here.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			return p.readmitOf(ctx, o, c, secrets)
		},
	})
}

func (p *program) readmitOf(ctx context.Context, o *operator.Operator, c chosen, secrets []string) (done, error) {
	receiver := p.receiverOf(o)
	if p.Receivers == nil && !p.withoutWorkers {
		alive, err := store.HasWorkers(ctx, p.pool, o.SourceName())
		if err == nil && !alive {
			err = operator.ErrNoWorkers
		}
		if err != nil {
			return done{}, err
		}
	}
	var r relay.Readmitted
	err := o.Record(ctx, "readmit", "messages that were set aside", p.reason, func(ctx context.Context) (result string, err error) {
		r, err = relay.Readmit(ctx, receiver, c.filter, secrets...)
		return fmt.Sprintf("%d accepted, %d left", r.Accepted, r.Left), err
	})
	if err != nil {
		return done{}, err
	}
	d := p.changed(o, "accepted", int64(r.Accepted))
	if err := p.sayLeft(ctx, o, c, int64(r.Accepted+r.Left), otherState); err != nil {
		return d, err
	}
	if r.Left > 0 {
		p.tell("%s of %s left set aside: %s", p.events(int64(r.Left)), terminal.Clean(o.SourceName()), short(r.Why.Error()))
		return d, errSaid
	}
	return d, nil
}

// receiverOf is the receiver of an operator's source.
func (p *program) receiverOf(o *operator.Operator) idem.Receiver {
	for n := range p.operators {
		if p.operators[n] == o {
			return p.receivers[n]
		}
	}
	return nil
}
