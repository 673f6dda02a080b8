package operator

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Both pages quote the command word for word.
func TestTheOnCallPagesQuoteWhyAnEventIsNotDone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	parked := Lookup{At: at, StoredEvent: idem.StoredEvent{
		Event: idem.Event{ID: "evt_1", Type: "PAYMENT_CONFIRMED", Payload: []byte("{}")}, State: idem.StateParked, Attempts: 20, LastError: "no such order",
	}}
	pending := func(change func(*Lookup)) Lookup {
		l := Lookup{At: at, Workers: 1, StoredEvent: idem.StoredEvent{Event: idem.Event{ID: "evt_2", Payload: []byte("{}")}, State: idem.StatePending, DueAt: at}}
		change(&l)
		return l
	}
	for _, page := range []string{"../../../docs/oncall.md", "../../../docs/pt-BR/oncall.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var quotes strings.Builder
		for _, block := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			quotes.WriteString(" " + strings.Join(strings.Fields(block[1]), " "))
		}
		for _, l := range []Lookup{
			pending(func(l *Lookup) { l.First = &parked }),
			pending(func(l *Lookup) {
				l.Claim = Claim{Since: at, Host: "shop-1", PID: 12345, SeenAt: at.Add(-2 * time.Second), Alive: true}
			}),
			pending(func(l *Lookup) { l.Attempts, l.LastError, l.DueAt = 1, "no such order", at.Add(time.Hour) }),
			pending(func(l *Lookup) { l.Workers = 0 }),
			pending(func(*Lookup) {}),
		} {
			if says := l.Says("en", func(t time.Time) string { return t.Format("15:04") }); !strings.Contains(quotes.String(), " "+says) {
				t.Errorf("%s does not quote %q", page, says)
			}
		}
	}
}

func TestWhyAnEventIsNotDoneIsSaidInPortuguese(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	event := func(state idem.State, change func(*Lookup)) Lookup {
		l := Lookup{StoredEvent: idem.StoredEvent{Event: idem.Event{ID: "e1", Type: "paid", Payload: []byte("{}")}, State: state, DueAt: now}, At: now, Workers: 1}
		if change != nil {
			change(&l)
		}
		return l
	}
	parked := event(idem.StateParked, func(l *Lookup) { l.Attempts, l.LastError = 10, "no such order." })
	claim := Claim{Since: now, Host: "shop-1", PID: 12345, SeenAt: now.Add(-2 * time.Second), Alive: true}
	for _, row := range []struct {
		of   Lookup
		want string
	}{
		{event(idem.StateDone, func(l *Lookup) { l.DoneAt = now }), "O evento foi concluído em 10h."},
		{event(idem.StateDiscarded, func(l *Lookup) { l.LastError = "discarded: a test" }), "O evento foi descartado: a test."},
		{event(idem.StatePending, func(l *Lookup) { l.Payload = nil }), "O evento não tem mais payload: alguém excluiu a sua linha de idem_payloads; exclua também a de idem_events e peça ao provedor que o entregue de novo."},
		{event(idem.StateUnhandled, nil), "O evento não tinha handler quando chegou: publique um e depois reprocesse-o, ou recoloque-o na fila onde há workers."},
		{parked, "O evento está isolado (parked): falhou 10 vezes, por último com: no such order; nada acontece com ele até que seja reprocessado, recolocado na fila ou descartado."},
		{event(idem.StatePending, func(l *Lookup) { l.First, l.Behind = &parked, 1 }), "O evento aguarda e1, um paid anterior da mesma entidade, que está isolado (parked): falhou 10 vezes, por último com: no such order; nada acontece com ele até que seja reprocessado, recolocado na fila ou descartado. 1 evento da mesma entidade aguarda este."},
		{event(idem.StatePending, func(l *Lookup) { l.Claim = claim }), "Está tudo certo: o evento está sendo processado desde 10h pelo processo 12345 em shop-1, que deu sinal de vida há 2s."},
		{event(idem.StatePending, func(l *Lookup) { l.Claim, l.Attempts = claim, 2 }), "O evento falhou 2 vezes; está sendo processado de novo desde 10h pelo processo 12345 em shop-1, que deu sinal de vida há 2s."},
		{event(idem.StatePending, func(l *Lookup) { l.Claim = claim; l.Claim.Alive, l.Crashes = false, 1 }), "O evento estava sendo processado desde 10h pelo processo 12345 em shop-1, sem sinal de vida há 2s: outros workers seguem com ele. 1 processo morreu enquanto o processava, ou perdeu a conexão com o Postgres."},
		{event(idem.StatePending, func(l *Lookup) { l.Claim.Since, l.Crashes = now, 2 }), "O evento estava sendo processado desde 10h por um processo que morreu: outros workers seguem com ele. 2 processos morreram enquanto o processavam, ou perderam a conexão com o Postgres."},
		{event(idem.StatePending, func(l *Lookup) { l.DueAt, l.Attempts, l.Behind = now.Add(time.Hour), 1, 1200 }), "O evento falhou uma vez; a próxima tentativa é em 11h. 1.200 eventos da mesma entidade aguardam este."},
		{event(idem.StatePending, func(l *Lookup) { l.DueAt = now.Add(time.Hour) }), "Está tudo certo: o evento não será processado antes de 11h."},
		{event(idem.StatePending, nil), "Está tudo certo: o evento está na vez desde 10h, e há workers ativos."},
		{event(idem.StatePending, func(l *Lookup) { l.Workers = 0 }), "O evento está na vez desde 10h, e não há workers ativos: inicie o programa que roda o inbox, a menos que Inbox.Drain rode de tempos em tempos."},
		{event(idem.StatePending, func(l *Lookup) { l.Workers, l.First = 0, &parked }), "O evento aguarda e1, um paid anterior da mesma entidade, que está isolado (parked): falhou 10 vezes, por último com: no such order; nada acontece com ele até que seja reprocessado, recolocado na fila ou descartado. Não há workers ativos: inicie o programa que roda o inbox, a menos que Inbox.Drain rode de tempos em tempos."},
	} {
		got := row.of.Says("pt-BR", func(t time.Time) string { return t.Format("15h") })
		if got != row.want {
			t.Errorf("of %s %s it says\n%s\nwant\n%s", row.of.State, row.of.Why(), got, row.want)
		}
	}
}
