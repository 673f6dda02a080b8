package idemcmd

import "github.com/paghooks/paghooks/internal/lang"

// portugueseHelp holds the texts of help; their English is where verbs and flags are.
var portugueseHelp = lang.Catalog{
	"how many events are not done, by state, and how old the oldest is": "quantos eventos estão por concluir, por estado, e a idade do mais antigo",
	"Pending events are next for the workers of an inbox. The provider delivers retrying ones again. Parked ones\n" +
		"failed too often, unhandled ones had no handler: nothing happens to them by itself.": "Eventos pending são os próximos dos workers de um inbox. O provedor entrega de novo os retrying. Os parked\n" +
		"falharam demais, os unhandled não tinham handler: nada acontece com eles por si só.",

	"events that are not done, the newest first": "eventos por concluir, os mais recentes primeiro",
	"Pending ones are next for the workers of an inbox, or wait for their next attempt; the provider delivers retrying\n" +
		"ones again. Stats counts them by state; show says of each why it is not done.": "Os pending são os próximos dos workers de um inbox, ou aguardam a próxima tentativa; o provedor entrega de novo os\n" +
		"retrying. Stats os conta por estado; show diz de cada um por que não foi concluído.",

	"one event, why it is not done, and its last errors; or what became of an entity": "um evento, por que não foi concluído e seus últimos erros; ou o que houve com uma entidade",
	"It also finds done events. They have no body, unless the application keeps bodies. -payload shows the body, and\n" +
		"records in the audit trail who looked.\n" +
		"-entity lists the events of a payment, say, also done ones, and why the first that is not done is not. It reads the\n" +
		"row of every event in the database, ten million in a second or two, unless somebody made an index:\n" +
		"  create index concurrently idem_events_key on idem_events (key)\n" +
		"With it the answer is there at once, and storing an event takes more work: docs/oncall.md has the numbers.": "Também encontra eventos concluídos. Estes não têm corpo, a menos que a aplicação os guarde. -payload mostra o corpo e\n" +
		"registra na trilha de auditoria quem o viu.\n" +
		"-entity lista os eventos de uma cobrança, por exemplo, inclusive os concluídos, e diz por que o primeiro por concluir\n" +
		"ainda não foi concluído. Lê a linha de cada evento no banco, dez milhões em um ou dois segundos, a menos que exista um índice:\n" +
		"  create index concurrently idem_events_key on idem_events (key)\n" +
		"Com ele a resposta é imediata, e gravar um evento dá mais trabalho: docs/oncall.md tem os números.",

	"entities whose events wait for an earlier one": "entidades cujos eventos aguardam um anterior",
	"Each line shows an entity and its first event. The oldest come first. Once it is done or discarded, the others are processed.": "Cada linha mostra uma entidade e o seu primeiro evento. Os mais antigos vêm primeiro. Assim que ele é concluído ou descartado, os outros são processados.",

	"events that came again with another body: only one of the two was processed":                                          "eventos que chegaram de novo com outro corpo: só um dos dois foi processado",
	"An id was used twice, or two accounts deliver to one address. The latest come first, until prune forgets the events.": "Um id foi usado duas vezes, ou duas contas entregam no mesmo endereço. Os últimos vêm primeiro, até que prune exclua os eventos.",

	"who did what to which events, the latest first":                                                         "quem fez o quê com quais eventos, os últimos primeiro",
	"With the number of an action it prints the events that this action chose, as other verbs take them.":    "Com o número de uma ação, mostra os eventos que ela escolheu, como os outros verbos os aceitam.",
	"stats, again and again, until Ctrl-C":                                                                   "stats, repetidamente, até Ctrl-C",
	"In a terminal it redraws, elsewhere it adds lines. Each look costs the database as much as idem stats.": "Em um terminal redesenha a tela; fora dele acrescenta linhas. Cada consulta custa ao banco o mesmo que idem stats.",

	"have the workers of an inbox process events again, each in its place": "recolocar eventos na fila dos workers de um inbox, cada um no seu lugar",
	"Workers must run somewhere, and have given a sign of life in the last seconds. An application with only a Processor has\n" +
		"none: use replay there.": "É preciso haver workers em algum lugar, com sinal de vida nos últimos segundos. Uma aplicação só com um Processor não\n" +
		"tem nenhum: use replay.",

	"process events here, with the application's handlers, one after the other": "reprocessar eventos aqui, com os handlers da aplicação, um depois do outro",
	"It needs a program with the handlers, see github.com/paghooks/paghooks/idem/idemcmd. It is safe while deliveries\n" +
		"arrive, and while it runs elsewhere. Ctrl-C or, from elsewhere, idem stop ends it after the event that is being processed:\n" +
		"idem resume goes on with the rest.\n" +
		"-dry-run runs the handlers and rolls them back, but what they do outside of their transaction does happen.": "Precisa de um programa com os handlers, veja github.com/paghooks/paghooks/idem/idemcmd. É seguro enquanto chegam\n" +
		"entregas e enquanto roda em outro lugar. Ctrl-C ou, de outro lugar, idem stop o interrompe depois do evento em\n" +
		"processamento: idem resume continua com os demais.\n" +
		"-dry-run executa os handlers e desfaz a transação, mas o que eles fazem fora dela acontece de verdade.",

	"take note of parked events: they make health red no more, and stay parked": "reconhecer eventos estacionados: deixam de pôr a saúde em vermelho e continuam parked",
	"It needs -reason, and ids or flags that choose events. It is of these events: the next one that is parked makes\n" +
		"health red again. Events that wait behind a parked one are left alone: they were never tried.": "Precisa de -reason e de ids ou flags que escolham eventos. Vale para estes eventos: o próximo que for estacionado põe a\n" +
		"saúde em vermelho de novo. Eventos que aguardam um estacionado ficam como estão: nunca foram tentados.",

	"give events up: they will not be processed, and their bodies are deleted": "descartar eventos: não serão processados, e seus corpos são excluídos",
	"It needs -reason, and ids or flags that choose events. Later events of their entities are then processed.\n" +
		"A program whose receiver sets KeepPayloads keeps the bodies.": "Precisa de -reason e de ids ou flags que escolham eventos. Os eventos seguintes das mesmas entidades são então processados.\n" +
		"Um programa cujo receptor define KeepPayloads guarda os corpos.",

	"ask a running action to end, whichever process runs it": "interromper uma ação em andamento, em qualquer processo",
	"ACTION is its number, which idem audit prints. A replay ends after the event that is being processed. A requeue, a\n" +
		"discard and an erase change nothing, unless they are committed by then. Stop changes no event, so it does not ask.": "ACTION é o número dela, que idem audit mostra. Um reprocessamento termina depois do evento em processamento. Requeue,\n" +
		"discard e erase não mudam nada, a menos que já tenham feito commit. Stop não muda nenhum evento, e por isso não pergunta.",

	"go on with an action that was stopped, that failed or whose process died": "continuar uma ação que foi interrompida, que falhou ou cujo processo morreu",
	"ACTION is the number of a replay, requeue or discard, which idem audit prints. The same is done to the events that it\n" +
		"has not reached, as a new action. A replay needs a program with the handlers: see idem help replay.": "ACTION é o número de um replay, requeue ou discard, que idem audit mostra. O mesmo é feito com os eventos que ela não\n" +
		"alcançou, como uma nova ação. Um replay precisa de um programa com os handlers: veja idem help replay.",

	"have messages of a relay that were set aside verified again, and accept those that are genuine": "verificar de novo mensagens de um relay que foram separadas, e aceitar as autênticas",
	"For after consumers had a wrong secret, or were older than the relay. It needs " + relaySecrets + " in the environment:\n" +
		"the relay's secret, or several with a space between. Events are stored for the workers of an inbox, which must run\n" +
		"somewhere; a program with a Processor processes them here. What is not genuine stays set aside.": "Para depois que consumidores tiveram um segredo errado, ou eram mais antigos que o relay. Precisa de " + relaySecrets + " no ambiente:\n" +
		"o segredo do relay, ou vários separados por espaço. Os eventos são gravados para os workers de um inbox, que devem rodar\n" +
		"em algum lugar; um programa com um Processor os processa aqui. O que não é autêntico continua separado.",

	"delete the bodies, errors and traces of events, also done ones": "excluir os corpos, erros e traces de eventos, inclusive os concluídos",
	"It is for a person who asks for it. It needs -reason, which is recorded as it is: write no name into it. An event that\n" +
		"is not done is left alone, as it may be an unprocessed payment, unless -discard is given. What stays is that the event\n" +
		"came: its ids, type, state and times, and a hash of its body. So it is a duplicate if it comes again, also from a spool\n" +
		"or a broker, and nothing is stored of it. -entity reads the row of every event in the database: see idem help show.\n" +
		"Not reached: the application's own tables, a spool's files, what brokers keep, messages of an outbox under other ids,\n" +
		"logs, traces and backups. docs/private-data.md has each place, and how to erase it.": "Para uma pessoa que pede a exclusão. Precisa de -reason, que é registrado como está: não escreva nomes nele. Um evento\n" +
		"por concluir fica como está, pois pode ser um pagamento não processado, a menos que se use -discard. O que fica é que o\n" +
		"evento chegou: seus ids, tipo, estado e horários, e um hash do corpo. Assim é um evento duplicado se chegar de novo, também de um\n" +
		"spool ou broker, e nada dele é gravado. -entity lê a linha de cada evento no banco: veja idem help show.\n" +
		"Não são alcançados: as tabelas da aplicação, os arquivos de um spool, o que brokers guardam, mensagens de um outbox com outros\n" +
		"ids, logs, traces e backups. docs/private-data.md tem cada lugar e como excluir os dados dele.",

	"forget old events, which idem.Serve does daily": "excluir eventos antigos, o que idem.Serve faz todo dia",
	"An event that is delivered again after that is processed again: -retention is 31 days or more. The prebuilt\n" +
		"command does not know the application's retention: give it. A wrong clock forgets nothing at once: what is old by\n" +
		"one run is forgotten by a run 23 hours later, so the first one forgets nothing. It also repairs what changing\n" +
		"rows by hand left.": "Um evento entregue de novo depois disso é processado de novo: -retention é de 31 dias ou mais. O comando pronto\n" +
		"não conhece a retenção da aplicação: informe-a. Um relógio errado não exclui nada de imediato: o que é antigo em\n" +
		"uma execução é excluído por outra 23 horas depois, e por isso a primeira não exclui nada. Também repara o que mudanças\n" +
		"feitas à mão nas linhas deixaram.",

	"move the events of an account to another scope or source, before the application uses its new name": "mover os eventos de uma conta para outro scope ou outra origem, antes que a aplicação use o novo nome",
	"An event is recognized by source, account and id. An account that gets a scope, or another one, or a source that\n" +
		"is renamed, without this, has every event that comes again done twice.\n" +
		"  1. Stop every process that receives or processes events of the source. The provider repeats what fails meanwhile.\n" +
		"  2. See that spools are empty, and that consumers have received all that relays published: what comes from there\n" +
		"     later has the old name, and is stored under that.\n" +
		"  3. idem rescope -source asaas -account \"\" -to-account shop-1 moves what has no account to shop-1.\n" +
		"  4. Start the version with the new name.\n" +
		"All moves, or nothing: it refuses while workers hold events, and where both have an event of the same id. It waits\n" +
		"for running transactions, and others wait for it. After renaming a source, use the prebuilt command.": "Um evento é reconhecido por origem, conta e id. Se uma conta ganha um scope, ou outro, ou se uma origem muda de nome\n" +
		"sem isto, todo evento que chegar de novo é processado duas vezes.\n" +
		"  1. Pare todos os processos que recebem ou processam eventos da origem. O provedor repete o que falhar enquanto isso.\n" +
		"  2. Veja que os spools estejam vazios e que os consumidores tenham recebido tudo o que relays publicaram: o que vier\n" +
		"     de lá depois tem o nome antigo e é gravado com ele.\n" +
		"  3. idem rescope -source asaas -account \"\" -to-account shop-1 move o que não tem conta para shop-1.\n" +
		"  4. Inicie a versão com o novo nome.\n" +
		"Tudo é movido, ou nada: recusa enquanto workers têm eventos, e onde ambos têm um evento de mesmo id. Espera\n" +
		"transações em andamento, e outras esperam por ela. Depois de mudar o nome de uma origem, use o comando pronto.",

	"create or update the tables, in the first schema of the search_path": "criar ou atualizar as tabelas, no primeiro schema do search_path",
	"If any are missing, the role needs the right to create tables. It refuses where the tables are in a later schema of\n" +
		"the search_path: the first one would get a second set, and events that were done would be done again.": "Se faltar alguma, o papel precisa do direito de criar tabelas. Recusa quando as tabelas estão em um schema posterior do\n" +
		"search_path: o primeiro ganharia um segundo conjunto, e eventos já concluídos seriam processados de novo.",

	"what is wrong with the database or the events, and what to do": "o que há de errado com o banco ou com os eventos, e o que fazer",
	"It changes nothing. The exit status is 4 if it found an error, and 0 if it found only warnings. Settings such\n" +
		"as Retention are those of the program's receivers: the prebuilt command checks only the defaults.": "Não muda nada. O código de saída é 4 se encontrou um erro e 0 se só encontrou avisos. Configurações como\n" +
		"Retention são as dos receptores do programa: o comando pronto só verifica os padrões.",

	// Flags.
	"print one JSON object per line": "mostrar um objeto JSON por linha",
	"`URL` of the database; default: DATABASE_URL, or PGHOST, PGUSER and the like, which other users of this machine cannot see": "`URL` do banco; sem ela: DATABASE_URL, ou PGHOST, PGUSER e similares, que outros usuários desta máquina não podem ver",
	"print at most `N` of each source; 0 is all":                                                                      "mostrar no máximo `N` de cada origem; 0 são todos",
	"only events of this `source`, a provider such as asaas; repeat it for more, or separate them by commas":          "só eventos desta `origem`, um provedor como asaas; repita para mais, ou separe por vírgulas",
	"`who` does this, for the audit trail; default: user@host":                                                        "`quem` faz isto, para a trilha de auditoria; sem ela: usuário@máquina",
	"`why`, for the audit trail":                                                                                      "o `motivo`, para a trilha de auditoria",
	"change without asking; needed where nobody is at a terminal":                                                     "mudar sem perguntar; necessária onde ninguém está em um terminal",
	"show what would happen, and change no event":                                                                     "mostrar o que aconteceria, sem mudar nenhum evento",
	"events in this `state`: pending, retrying, unhandled or parked; for more: as -source (default all of these)":     "eventos neste `estado`: pending, retrying, unhandled ou parked; para mais: como -source (padrão: todos estes)",
	"events in this `state`: pending, retrying, unhandled or parked; for more: as -source (default unhandled,parked)": "eventos neste `estado`: pending, retrying, unhandled ou parked; para mais: como -source (padrão: unhandled,parked)",
	"events of this `account`; repeat it for more":                                                                    "eventos desta `conta`; repita para mais",
	"the event's `account`; repeat it for more":                                                                       "a `conta` do evento; repita para mais",
	"events of this `type`; for more: as -source":                                                                     "eventos deste `tipo`; para mais: como -source",
	"events about this `entity`, a payment's id for example; repeat it for more":                                      "eventos sobre esta `entidade`, o id de uma cobrança por exemplo; repita para mais",
	"the events about this `entity`, a payment's id for example; repeat it for more":                                  "os eventos sobre esta `entidade`, o id de uma cobrança por exemplo; repita para mais",
	"the event of this `id`; repeat it for more, or give ids after the verb":                                          "o evento deste `id`; repita para mais, ou escreva ids depois do verbo",
	"only events of which an attempt has failed, also those that are tried again by themselves":                       "só eventos com alguma tentativa sem sucesso, também os que são tentados de novo por si sós",
	"events that arrived at this `time` or later: 2026-11-20T10:00:00Z, 2026-11-20 or, for how long ago, 2h or 3d":    "eventos que chegaram neste `horário` ou depois: 2026-11-20T10:00:00Z, 2026-11-20 ou, para há quanto tempo, 2h ou 3d",
	"events that arrived before this `time`":                                                                          "eventos que chegaram antes deste `horário`",
	"show the body, which holds personal data; this is recorded":                                                      "mostrar o corpo, que contém dados pessoais; isto é registrado",
	"the `time` between two looks, 1s at least":                                                                       "o `tempo` entre duas consultas, no mínimo 1s",
	"end after `N` looks; 0 is never":                                                                                 "encerrar depois de `N` consultas; 0 é nunca",
	"requeue although no workers are alive: nothing happens until some are":                                           "recolocar na fila mesmo sem workers ativos: nada acontece até que haja algum",
	"also where no workers are alive: what is stored waits until some are":                                            "também onde não há workers ativos: o que é gravado espera até que haja algum",
	"give up events that are not done, and erase them: they will not be processed":                                    "descartar eventos por concluir e excluir seus dados: não serão processados",
	"forget done, unhandled and discarded events of this `age` or older; default: as the receiver is set, else 45d":   "excluir eventos done, unhandled e discarded com esta `idade` ou mais; sem ela: como define o receptor, ou 45d",
	"accept a -retention below 31 days: an event that is delivered again after that is processed a second time":       "aceitar uma -retention abaixo de 31 dias: um evento entregue de novo depois disso é processado uma segunda vez",
	"also forget parked events of this `age` or older; default: as the receiver is set, else never":                   "excluir também eventos parked com esta `idade` ou mais; sem ela: como define o receptor, ou nunca",
	"also delete entries of the audit trail of this `age` or older; default: as the receiver is set, else never":      "excluir também entradas da trilha de auditoria com esta `idade` ou mais; sem ela: como define o receptor, ou nunca",
	"the `account` that the events get; \"\" is none":                                                                 "a `conta` que os eventos recebem; \"\" é nenhuma",
	"the `source` that the events get; default: the one they have":                                                    "a `origem` que os eventos recebem; sem ela: a que eles têm",
	"create or update the tables of this `schema`, which must exist, whatever the search_path is":                     "criar ou atualizar as tabelas deste `schema`, que deve existir, seja qual for o search_path",
	"say what is missing, and change nothing":                                                                         "dizer o que falta, sem mudar nada",
	"print the SQL of all migrations, and end; it may be run again without harm":                                      "mostrar o SQL de todas as migrações e encerrar; pode ser executado de novo sem dano",

	// Environment.
	"the database's address, where -database does not say it":                                                                              "o endereço do banco, onde -database não o diz",
	"and PGPORT, PGUSER, PGPASSWORD, PGDATABASE, PGSSLMODE, PGOPTIONS and the like: what neither says, as Postgres's own programs read it": "e PGPORT, PGUSER, PGPASSWORD, PGDATABASE, PGSSLMODE, PGOPTIONS e similares: o que nenhum dos dois diz, como os programas do Postgres leem",
	"the relay's secret, for readmit; several with a space between":                                                                        "o segredo do relay, para readmit; vários separados por espaço",
}
