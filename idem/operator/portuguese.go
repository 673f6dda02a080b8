package operator

import "github.com/paghooks/paghooks/internal/lang"

// portuguese holds the sentences of [Lookup.Says]. A text that goes on after "it" or "which" in
// English does so after "o evento" or "que".
var portuguese = lang.Catalog{
	"It %s.":                                 "O evento %s.",
	"Nothing is wrong: it %s.":               "Está tudo certo: o evento %s.",
	"Before it, %s is to be done, which %s.": "Antes dele vem %s, que %s.",
	"%s process died while they processed it, or were cut off from Postgres.":                                 "%s processo morreu enquanto o processava, ou perdeu a conexão com o Postgres.",
	"%s processes died while they processed it, or were cut off from Postgres.":                               "%s processos morreram enquanto o processavam, ou perderam a conexão com o Postgres.",
	"%s event of its entity waits for it.":                                                                    "%s evento da mesma entidade aguarda este.",
	"%s events of its entity wait for it.":                                                                    "%s eventos da mesma entidade aguardam este.",
	"No workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time.": "Não há workers ativos: inicie o programa que roda o inbox, a menos que Inbox.Drain rode de tempos em tempos.",

	"was done at %s":    "foi concluído em %s",
	"was discarded: %s": "foi descartado: %s",
	"is not in idem_events any more: somebody deleted its row; idem prune has the others go on":                                                "não está mais em idem_events: alguém excluiu a sua linha; idem prune faz os outros seguirem",
	"has no body any more: somebody deleted its row of idem_payloads; delete that of idem_events, too, and have the provider deliver it again": "não tem mais corpo: alguém excluiu a sua linha de idem_payloads; exclua também a de idem_events e peça ao provedor que o entregue de novo",
	"%s; the provider is to deliver it again":                                                  "%s; cabe ao provedor entregá-lo de novo",
	"had no handler when it came: deploy one, then replay it, or requeue it where workers run": "não tinha handler quando chegou: publique um e depois reprocesse-o, ou recoloque-o na fila onde há workers",
	"is parked: it %s; nothing happens to it until it is replayed, requeued or discarded":      "está estacionado (parked): %s; nada acontece com ele até que seja reprocessado, recolocado na fila ou descartado",
	"waits for %s, an earlier event of its entity, which %s":                                   "aguarda %s, um evento anterior da mesma entidade, que %s",
	"waits for %s, an earlier %s of its entity, which %s":                                      "aguarda %s, um %s anterior da mesma entidade, que %s",
	"%s; the next attempt is at %s":                                                            "%s; a próxima tentativa é em %s",
	"is not due before %s":                                                                     "não será processado antes de %s",

	"is next":               "é o próximo",
	"has been due since %s": "está na vez desde %s",
	"%s; it %s":             "%s; %s",
	"%s: what it waited for is done, and idem.Serve, Processor.Run or a replay goes on with it":                      "%s: o que ele aguardava terminou, e idem.Serve, Processor.Run ou um reprocessamento segue com ele",
	"%s, and no workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time": "%s, e não há workers ativos: inicie o programa que roda o inbox, a menos que Inbox.Drain rode de tempos em tempos",
	"%s, and workers are alive": "%s, e há workers ativos",

	"was being processed from %s on, by a process that is dead: other workers go on with it":                                   "estava sendo processado desde %s por um processo que morreu: outros workers seguem com ele",
	"was being processed from %s on, by process %s on %s, which has given no sign of life for %s: other workers go on with it": "estava sendo processado desde %s pelo processo %s em %s, sem sinal de vida há %s: outros workers seguem com ele",
	"%s; it is being processed again since %s, by process %s on %s, which gave a sign of life %s ago":                          "%s; está sendo processado de novo desde %s pelo processo %s em %s, que deu sinal de vida há %s",
	"is being processed since %s, by process %s on %s, which gave a sign of life %s ago":                                       "está sendo processado desde %s pelo processo %s em %s, que deu sinal de vida há %s",

	"has failed":          "falhou",
	"has failed once":     "falhou uma vez",
	"has failed %s times": "falhou %s vezes",
	"%s, last with: %s":   "%s, por último com: %s",
}
