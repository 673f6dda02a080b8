package queue

import "github.com/paghooks/paghooks/internal/lang"

// portugueseHelp holds the texts of help; their English is where verbs and flags are.
var portugueseHelp = lang.Catalog{
	"the webhooks, the state of their queues, and what the application owes": "os webhooks, o estado das suas filas e o que a aplicação deve",
	"A queue is ok, penalized (Asaas waits longer and longer between attempts), or stopped (after 15\n" +
		"failures in a row). For a webhook that is disabled Asaas makes no events, and none comes later.\n" +
		"With -name, -url and -handled it also says which events of the application's webhook never come.": "Uma fila está ok, penalized (penalizada: o Asaas espera cada vez mais entre as tentativas) ou stopped (interrompida,\n" +
		"após 15 falhas seguidas). Para um webhook disabled (desativado) o Asaas não gera eventos, e nenhum chega depois.\n" +
		"Com -name, -url e -handled também diz quais eventos do webhook da aplicação nunca chegam.",

	"try the receiver, get the queue going again, and watch it": "testar o receptor, reativar a fila e acompanhá-la",
	"Sends a made-up event of each type that the webhook subscribes to. The application's handlers run for\n" +
		"real, and what they wrote is rolled back: HTTP requests and e-mails that they send are sent, unless\n" +
		"they ask idem.IsDryRun first. If all that it handles pass, it resumes the queue or removes its penalty, and watches until Asaas counts no\n" +
		"failures any more. It ends with what the application owes.": "Envia um evento inventado de cada tipo que o webhook assina. Os handlers da aplicação rodam de\n" +
		"verdade, e o que gravaram é desfeito: chamadas HTTP e e-mails que eles enviam são enviados, a menos que\n" +
		"consultem idem.IsDryRun antes. Se tudo o que ela trata passar, reativa a fila ou remove a penalização, e acompanha até o Asaas não\n" +
		"contar mais falhas. Termina com o que a aplicação deve.",

	"have Asaas deliver at once again, without trying the receiver": "fazer o Asaas entregar logo de novo, sem testar o receptor",
	"The next failure leads to a penalty again. Once a minute at most, for all who use this machine's\n" +
		"account: Asaas limits it strictly, without saying how.": "A próxima falha leva a uma penalização de novo. No máximo uma vez por minuto, para todos que usam a conta\n" +
		"desta máquina: o Asaas limita isto com rigor, sem dizer como.",

	"start a queue again that Asaas stopped, without trying the receiver": "reativar uma fila que o Asaas interrompeu, sem testar o receptor",
	"What has waited is delivered in its order.":                          "O que esperou é entregue na sua ordem.",

	"compare the webhook with what the application handles; it changes nothing": "comparar o webhook com o que a aplicação trata; não muda nada",
	"Whether it exists, is enabled and not stopped, its URL, its order (SEQUENTIALLY), apiVersion 3, its token\n" +
		"and its event types. The exit status is 4 if it differs.": "Se existe, está ativado e não interrompido, a URL, a ordem (SEQUENTIALLY), apiVersion 3, o token\n" +
		"e os tipos de evento. O código de saída é 4 se houver diferença.",

	"make the webhook, or repair how it differs": "criar o webhook, ou corrigir as suas diferenças",
	"Prints the plan, asks, and changes what Asaas's API can change, in one call. A token or a URL is sent to\n" +
		"Asaas only if the receiver at that URL accepts the token, which it is asked with an event of a canary:\n" +
		"so start the application first. It deletes no webhook. The exit status is 4 if it still differs.": "Mostra o plano, pergunta e muda o que a API do Asaas permite mudar, em uma chamada. Um token ou uma URL só é enviado ao\n" +
		"Asaas se o receptor nessa URL aceitar o token, o que lhe é perguntado com um evento de um canary:\n" +
		"por isso inicie a aplicação antes. Não exclui webhooks. O código de saída é 4 se ainda houver diferença.",

	"give the webhook a new token, which the application accepts already": "dar ao webhook um novo token, que a aplicação já aceita",
	"First deploy the application with both tokens. It sends the receiver an event of a canary with the new one, and\n" +
		"changes nothing unless that is accepted. You end the old one, once deliveries have come with the new one.": "Antes, faça o deploy da aplicação com os dois tokens. Envia ao receptor um evento de um canary com o novo e\n" +
		"não muda nada se ele não for aceito. Encerre o antigo quando entregas tiverem chegado com o novo.",

	"the event types that the webhook subscribes to": "os tipos de evento que o webhook assina",

	"name the charges of which an event never came; it changes nothing": "apontar as cobranças das quais um evento nunca chegou; não muda nada",
	"For after a queue that was stopped for more than 14 days, or a webhook that was disabled. Compares what\n" +
		"Asaas says since a time with the events that are stored. Its calls come out of the account's own quota.": "Para depois de uma fila interrompida por mais de 14 dias, ou de um webhook desativado. Compara o que\n" +
		"o Asaas diz desde um horário com os eventos gravados. As chamadas saem da cota da própria conta.",

	// Flags.
	"print one JSON object per line":                                                                                  "mostrar um objeto JSON por linha",
	"the account is in Asaas's sandbox":                                                                               "a conta está no Sandbox do Asaas",
	"change without asking; needed where nobody is at a terminal":                                                     "mudar sem perguntar; necessária onde ninguém está em um terminal",
	"also where Asaas counts no failures; what it counts is not documented":                                           "também onde o Asaas não conta falhas; o que ele conta não está documentado",
	"replay the events that are parked or wait for another delivery; needs a program with the application's handlers": "reprocessar os eventos estacionados (parked) ou que aguardam outra entrega; precisa de um programa com os handlers da aplicação",
	"`URL` of the application's database; default: DATABASE_URL, which other users of this machine cannot see":        "`URL` do banco da aplicação; sem ela: DATABASE_URL, que outros usuários desta máquina não podem ver",
	"the `time` when the newest event that the application acknowledged came to be: 2026-11-20T10:00:00-03:00, without a zone for Brasília, or how long ago, 3d; it tells the time left": "o `horário` em que surgiu o evento mais novo que a aplicação confirmou: 2026-11-20T10:00:00-03:00, sem fuso para Brasília, ou há quanto tempo, 3d; mostra o tempo restante",
	"compare with the event types in this `file`, those that asaas.Dispatcher.Types returns, one per line or as fmt prints them; - reads them from stdin":                                "comparar com os tipos de evento neste `arquivo`, os que asaas.Dispatcher.Types retorna, um por linha ou como fmt os escreve; - os lê de stdin",
	"the `time` between two looks at the queue": "o `tempo` entre duas consultas à fila",
	"the `time` before which every event is known to have arrived: 2026-11-20T10:00:00-03:00, without a zone for Brasília, or how long ago, 3d": "o `horário` antes do qual se sabe que todo evento chegou: 2026-11-20T10:00:00-03:00, sem fuso para Brasília, ou há quanto tempo, 3d",
	"the `time` at which the gap ends; now by default":                                    "o `horário` em que a lacuna termina; por padrão, agora",
	"make `N` calls of the API at most, of 25,000 in 12 hours":                            "fazer no máximo `N` chamadas à API, das 25.000 em 12 horas",
	"the `cursor` that a run printed which came not to its end, in single quotes":         "o `cursor` que uma execução incompleta mostrou, entre aspas simples",
	"the webhook's `name` at Asaas; the webhook of this name or URL is the application's": "o `nome` do webhook no Asaas; o webhook com este nome ou URL é o da aplicação",
	"the `URL` that Asaas delivers to":                                                    "a `URL` em que o Asaas entrega",
	"the `address` that Asaas writes to when deliveries fail; a new webhook needs one":    "o `endereço` a que o Asaas escreve quando entregas falham; um webhook novo precisa de um",

	// Environment.
	"the API key, in single quotes because of its $":                                                      "a chave de API, entre aspas simples por causa do $",
	"the API's address, for a fake Asaas for example: http://127.0.0.1:8090/v3":                           "o endereço da API, para um Asaas simulado por exemplo: http://127.0.0.1:8090/v3",
	"the webhook's token, as the application verifies with it":                                            "o token do webhook, com o qual a aplicação verifica",
	"the token that the webhook is to get, for rotate":                                                    "o token que o webhook vai receber, para rotate",
	"the application's database, where -database does not say it; without both, what is owed is not told": "o banco da aplicação, onde -database não o diz; sem os dois, não se diz o que se deve",
	"where removals of penalties are noted":                                                               "onde se registram as remoções de penalizações",
	"and HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR: as any Go program reads them":                 "e HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR: como qualquer programa em Go os lê",
}
