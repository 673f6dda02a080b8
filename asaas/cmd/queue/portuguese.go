package queue

import "github.com/paghooks/paghooks/internal/lang"

// portuguese holds the command's texts, help apart; its English is where it is printed.
var portuguese = lang.Catalog{
	"NAME": "NOME", "STATE": "ESTADO", "PENALIZED": "PENALIZADOS", "TIME LEFT": "TEMPO RESTANTE", "TYPE": "TIPO",
	"The account has no webhooks.":   "A conta não tem webhooks.",
	"%s, disabled":                   "%s, desativado",
	"give -last-event":               "informe -last-event",
	"none, events may be deleted":    "nenhum, eventos podem ser excluídos",
	"NOT SUBSCRIBED, though handled": "NÃO ASSINADO, embora tratado",
	"subscribed and handled":         "assinado e tratado",
	"subscribed, not handled":        "assinado, não tratado",

	"What the application owes is not known: set DATABASE_URL to its database to see the events that are parked.":                              "Não se sabe o que a aplicação deve: defina DATABASE_URL com o banco dela para ver os eventos estacionados.",
	"nothing is owed of what was delivered: no event is parked, and none waits for another delivery; reconcile finds what was never delivered": "nada se deve do que foi entregue: nenhum evento está estacionado, e nenhum aguarda outra entrega; reconcile encontra o que nunca foi entregue",
	"still owed; idem list shows the events, and why:":                                                                                         "ainda se deve; idem list mostra os eventos, e por quê:",
	"%s, since %s": "%s, desde %s",
	"next: once that is fixed, idem requeue has the workers of an inbox process them; without an inbox, replay them with a program that has the handlers, such as this command with recover -replay": "a seguir: depois de corrigir a causa, idem requeue os recoloca na fila dos workers de um inbox; sem inbox, reprocesse-os com um programa que tenha os handlers, como este comando com recover -replay",
	"next: fix that, and run recover -replay again":                "a seguir: corrija a causa e rode recover -replay de novo",
	"next: once that is fixed, recover -replay works through them": "a seguir: depois de corrigir a causa, recover -replay os reprocessa",

	"next: %s": "a seguir: %s",
	"look with status whether the failures fall within some minutes":                                                                         "veja com status se as falhas diminuem em alguns minutos",
	"look with status whether the failures fall within some minutes; if they do not: remove-penalty %s":                                      "veja com status se as falhas diminuem em alguns minutos; se não: remove-penalty %s",
	"if events do not come all the same: remove-penalty -force %s removes a penalty that Asaas's count does not show":                        "se mesmo assim os eventos não chegarem: remove-penalty -force %s remove uma penalização que a contagem do Asaas não mostra",
	"the webhook has the new token; once the queue is empty and deliveries have come with it, have the application accept the new one alone": "o webhook tem o novo token; quando a fila estiver vazia e entregas tiverem chegado com ele, faça a aplicação aceitar só o novo",

	"%s at %s: %s, Asaas counts %s failures.":              "%s em %s: %s, o Asaas conta %s falhas.",
	"Remove its penalty, without trying the receiver?":     "Remover a penalização, sem testar o receptor?",
	"Give it the new token, if the receiver accepts that?": "Dar a ele o novo token, se o receptor o aceitar?",
	"Start its queue again, without trying the receiver?":  "Reativar a fila, sem testar o receptor?",
	"Try the receiver with events that are rolled back (its HTTP requests are real, unless it asks idem.IsDryRun), and start the queue again if it is sound?":                          "Testar o receptor com eventos que são desfeitos (as chamadas HTTP dele são reais, a menos que ele consulte idem.IsDryRun) e reativar a fila se ele estiver bem?",
	"Try the receiver with events that are rolled back (its HTTP requests are real, unless it asks idem.IsDryRun), and if it is sound, start the queue again and replay what is owed?": "Testar o receptor com eventos que são desfeitos (as chamadas HTTP dele são reais, a menos que ele consulte idem.IsDryRun) e, se ele estiver bem, reativar a fila e reprocessar o que se deve?",
	"Repair what apply repairs? Event types that are removed are not made any more.":                                                                                                   "Corrigir o que apply corrige? Os tipos de evento removidos deixam de ser gerados.",
}
