package diagnosis

import "github.com/paghooks/paghooks/internal/lang"

// Say returns a text of this package in a language.
func Say(l lang.Lang, t lang.Text) string { return portuguese.Say(l, t) }

var portuguese = lang.Catalog{
	"the first has been due for %s":                                  "o primeiro está na vez há %s",
	"no workers are alive: what comes is stored, and waits for them": "não há workers ativos: o que chega é gravado e espera por eles",

	"start the program that processes events, unless it runs from time to time": "inicie o programa que processa os eventos, a menos que ele rode de tempos em tempos",

	"no workers are alive, and %s event waits for them": "não há workers ativos, e %s evento espera por eles",
	"no workers are alive, and %s events wait for them": "não há workers ativos, e %s eventos esperam por eles",

	"start the program that processes events, here or elsewhere; where none can run, the command with your handlers": "inicie o programa que processa os eventos, aqui ou em outro lugar; onde nenhum pode rodar, o comando com os seus handlers",

	"workers run and do not keep up": "os workers rodam e não dão conta",
	"the workers are behind":         "os workers estão atrasados",

	"see how long handlers take, and whether they hang; then run more workers or processes; the database's load may be the limit": "veja quanto tempo os handlers levam, e se estão travados; depois rode mais workers ou processos; o limite pode ser a carga do banco de dados",

	"%s event is pending":   "%s evento está pendente",
	"%s events are pending": "%s eventos estão pendentes",

	"the database's clock was put back: what arrived before waits until it is that late again": "o relógio do banco de dados foi atrasado: o que chegou antes espera até que ele chegue de novo à mesma hora",

	"an event arrived %s in the future":                     "um evento chegou %s no futuro",
	"put the clock right, or have the events tried at once": "acerte o relógio, ou mande tentar os eventos imediatamente",

	"%s event fails, and is tried again by itself":               "%s evento falha e terá novas tentativas automáticas",
	"%s events fail, and are tried again by themselves":          "%s eventos falham e terão novas tentativas automáticas",
	"%s event fails, and no workers are alive to try it again":   "%s evento falha, e não há workers ativos para tentar de novo",
	"%s events fail, and no workers are alive to try them again": "%s eventos falham, e não há workers ativos para tentar de novo",

	"put right what the error says, and deploy it; a requeue has all tried at once, not when they are due": "corrija o que o erro diz e publique; recolocá-los na fila faz tentar todos imediatamente, sem esperar a vez",

	"%s event is parked, until a person acts":   "%s evento está isolado, até que alguém aja",
	"%s events are parked, until a person acts": "%s eventos estão isolados, até que alguém aja",
	": first %s, %s": ": o primeiro é %s, %s",
	"put right what the error says, and deploy it; then requeue them": "corrija o que o erro diz e publique; depois recoloque-os na fila",

	"put right what the error says, and deploy it; then replay them with your handlers, as no workers are alive":                                                                             "corrija o que o erro diz e publique; depois reprocesse-os com os seus handlers, porque não há workers ativos",
	"have what is in front of the receiver pass bodies on unchanged, see the error; have the provider deliver those events again, or book what they said in another way; then discard these": "faça com que o que está na frente do endpoint repasse os payloads sem alterá-los, veja o erro; peça ao provedor que entregue esses eventos de novo, ou lance de outra forma o que diziam; depois descarte estes",

	"for the %s of type %s: %s. For the others: %s":                 "para os %s do tipo %s: %s. Para os outros: %s",
	"%s; the oldest came %s ago":                                    "%s; o mais antigo chegou há %s",
	"; last error of %s: %s":                                        "; último erro de %s: %s",
	"; acknowledged are %s more":                                    "; mais %s estão reconhecidos",
	"; so many events are not done that this is said of %s of them": "; há tantos eventos por concluir que isto vale para %s deles",
	"; %s event waits behind":                                       "; %s evento espera atrás",
	"; %s events wait behind":                                       "; %s eventos esperam atrás",
	"%s event waits for a parked one":                               "%s evento espera por um isolado",
	"%s events wait for parked ones":                                "%s eventos esperam por isolados",
	": the first for %s, of %s":                                     ": o primeiro por %s, de %s",
	"%s entity stands still":                                        "%s entidade está parada",
	"%s entities stand still":                                       "%s entidades estão paradas",

	"put right what the error says, and deploy it; then start the program that processes events": "corrija o que o erro diz e publique; depois inicie o programa que processa os eventos",
	"put right what its error says, and requeue it, or discard it to give it up":                 "corrija o que o erro dele diz e recoloque-o na fila, ou descarte-o para desistir dele",

	"events are paused: deliveries are stored, and none of these events begins": "há eventos em pausa: as entregas são gravadas, e nenhum desses eventos começa",

	"let it end, or end it":  "deixe a pausa acabar, ou encerre-a",
	"%s until %s, by %s: %s": "%s até %s, por %s: %s",
	"all events":             "todos os eventos",
	"somebody has acknowledged what fails or is parked": "alguém reconheceu o que falha ou está isolado",
	"%s event":  "%s evento",
	"%s events": "%s eventos",

	"Postgres does not answer, or takes no writes.": "O Postgres não responde, ou não aceita escritas.",

	"The webhook is disabled or stopped at the provider, or lacks types of events.": "O webhook está desativado ou interrompido no provedor, ou faltam nele tipos de eventos.",

	"Deliveries are refused: a token, a secret or a clock is wrong.": "As entregas são recusadas: há um token, um segredo ou um relógio errado.",

	"Deliveries fail here: the provider stops its queue when that goes on.": "As entregas falham aqui: se isso continuar, o provedor interrompe a fila.",

	"No delivery has come for a long time.":                        "Há muito tempo não chega nenhuma entrega.",
	"The canary does not arrive: real deliveries may not, either.": "O canary não chega: talvez as entregas reais também não.",
	"The handlers fail, event after event: see the errors.":        "Os handlers falham, evento após evento: veja os erros.",
	"Events are due, and are not processed.":                       "Há eventos na vez que não são processados.",

	"The database's clock was put back: events wait until it is that late again.": "O relógio do banco de dados foi atrasado: os eventos esperam até que ele chegue de novo à mesma hora.",

	"Events have been failing for a long time: see the errors.": "Há eventos falhando há muito tempo: veja os erros.",
	"Events are parked: see the errors.":                        "Há eventos isolados: veja os erros.",
	"Events wait for a parked one.":                             "Há eventos à espera de um isolado.",

	"Many first tries take too long, and handlers run twice: make them faster, or do without WorkFirst.": "Muitas primeiras tentativas demoram demais, e os handlers rodam duas vezes: torne-os mais rápidos, ou não use WorkFirst.",

	"The broker takes no messages, or none of a type.": "O broker não aceita mensagens, ou nenhuma de um tipo.",

	"Events are stored without an account: one that comes again is done twice.":              "Há eventos gravados sem conta: um que chegue de novo será processado duas vezes.",
	"Charges are paid that match nothing of the application's: match each, or give it back.": "Há cobranças pagas que não correspondem a nada da aplicação: associe cada uma, ou estorne-a.",

	"Orders got more than their total: give back what is too much.": "Pedidos receberam mais do que o total: devolva o excesso.",

	"Charges could not be compared with Asaas, or booked, or no run of it has ended for two days: see the log.": "Não foi possível comparar cobranças com o Asaas, ou lançá-las, ou nenhuma execução disso terminou há dois dias: veja o log.",
	"The charges and the account's statement differ: an event was lost, or booked wrong.":                       "As cobranças e o extrato da conta diferem: um evento se perdeu, ou foi lançado errado.",

	"A health check does not return.": "Um health check não termina.",
}
