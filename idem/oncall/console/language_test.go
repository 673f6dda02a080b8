package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/console"
	"github.com/paghooks/paghooks/idem/telemetry/gauge"
)

// in asks for a page as a browser does that prefers a language, and has cookies.
func (a *app) in(language, address string, cookies ...*http.Cookie) answer {
	a.Helper()
	r := httptest.NewRequest(http.MethodGet, a.prefix+address, nil)
	r.Header.Set("Accept-Language", language)
	for _, c := range cookies {
		r.AddCookie(c)
	}
	return a.do(r)
}

func TestThePageIsInTheLanguageOfTheBrowser(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	a.accept(a.inbox.Accept, idem.Event{ID: "e2", Type: "paid", Key: "order-e1", Payload: body("e2")})
	a.page.Queues = map[string]gauge.Queues{"letters": &queues{all: []gauge.Queue{{ID: "q2", Name: "transfers", Enabled: true, Penalized: 1200}}}}
	for address, want := range map[string]string{
		"":                                          "1 isolado falharam e esperam por você",
		"./":                                        "penalizada: 1.200 entregas sem sucesso contam contra ela",
		"event?source=letters&id=e1":                "O evento está isolado (parked): falhou uma vez, por último com: no such order: order-e1; nada acontece com ele até que seja reprocessado, recolocado na fila ou descartado. 1 evento da mesma entidade aguarda este.",
		"event?source=letters&id=e2":                "O evento aguarda e1, um paid anterior da mesma entidade, que está isolado (parked): falhou uma vez",
		"events?source=letters":                     "Estado por concluir",
		"find?q=order-e1":                           "letters e1 : O evento está isolado",
		"trail?source=letters":                      "Ninguém fez nada.",
		"confirm?action=replay":                     "Reprocessar? 2 eventos : estado: pendente, sem handler, isolado; escolhidos pela chave: 2.",
		"confirm?action=replay&state=parked":        "O handler de cada um será executado aqui, do mais antigo",
		"confirm?action=dry-run":                    "O handler de cada um será executado aqui, e a transação, desfeita.",
		"confirm?action=requeue&source=letters":     "Os workers do inbox os processarão de novo",
		"confirm?action=discard&state=parked":       "Eles não serão processados, e seus payloads serão excluídos",
		"confirm?action=erase&one=1&account=&id=e1": "Seus payloads, erros e traces serão excluídos. Isto não pode ser desfeito. Fica o registro de que eles chegaram",
		"confirm?action=erase&one=1&account=&id=e2&source": "Ficam fora: as tabelas da própria aplicação",

		"nothing":                       "Erro Esta página não existe.",
		"events?source=letters&from=x":  "Escreva o horário como 2026-11-20T15:04, em UTC.",
		"entity?entity=%3Cb%3E&account": "Entidade <b> , em ordem de chegada.",
	} {
		p := a.in("pt-BR,pt;q=0.9,en;q=0.8", address)
		p.want(p.status, want)
		if !strings.Contains(p.body, `<html lang="pt-BR">`) {
			t.Errorf("%s does not say its language", address)
		}
	}
	english := a.in("en-US,en;q=0.9,pt;q=0.8", "event?source=letters&id=e1")
	english.want(200, "It is parked: it has failed once")
	if !strings.Contains(english.body, `<html lang="en">`) {
		t.Error("the page does not say its language")
	}
	a.page.Access = nil
	a.in("pt", "").want(403, "Ninguém pode ver esta página")
}

var switches = regexp.MustCompile(`<a href="([^"]*)" lang="([^"]*)" hreflang="[^"]*">([^<]*)</a>`)

func TestALinkSwitchesTheLanguageOfThePageAndOfThoseThatFollow(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1")
	page := a.in("en", "event?source=letters&id=e1&account=")
	link := switches.FindStringSubmatch(page.body)
	if link == nil || link[2] != "pt-BR" || link[3] != "Português" {
		t.Fatalf("the page has no link to its Portuguese: %q", link)
	}
	other := a.in("en", "event"+strings.ReplaceAll(link[1], "&amp;", "&"))
	other.want(200, "Id e1", "O evento está isolado")
	cookies := (&http.Response{Header: other.header}).Cookies()
	if len(cookies) != 1 || cookies[0].Value != "pt-BR" || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteLaxMode || cookies[0].Path != "" || cookies[0].MaxAge <= 0 {
		t.Fatalf("the choice is kept as %v, want one cookie for the folder of the pages, for no script and for no other site's forms", cookies)
	}
	next := a.in("en", "trail", cookies...)
	next.want(200, "Ninguém fez nada.")
	if len(next.header["Set-Cookie"]) != 0 {
		t.Error("a page sets the cookie that it was sent")
	}
	if back := switches.FindStringSubmatch(next.body); back == nil || back[2] != "en" || back[1] != "?lang=en" {
		t.Errorf("the page leads back by %q", back)
	}
	shown := a.post("reveal", url.Values{"source": {"letters"}, "id": {"e1"}})
	if link := switches.FindStringSubmatch(shown.body); link == nil || link[1] != "./?lang=pt-BR" {
		t.Errorf("a page that is the answer to a form leads to %q, want one that can be asked for", link)
	}
}

func TestALanguageThatThereIsNotChangesNothing(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	for _, hostile := range []string{"xx", `"><script>`, "pt-BR\r\nSet-Cookie: a=b", "PT-br", ""} {
		p := a.in("en", "?lang="+url.QueryEscape(hostile), &http.Cookie{Name: "console_lang", Value: "fr"})
		p.want(200, "Overview")
		if p.header.Get("Set-Cookie") != "" || strings.Contains(p.body, "<script>") {
			t.Errorf("lang=%q sets the cookie %q:\n%s", hostile, p.header.Get("Set-Cookie"), p.body)
		}
	}
	a.page.Access = func(*http.Request) (string, console.Access) { return "", console.Access{} }
	if p := a.in("en", "?lang=pt-BR"); p.status != 403 || !strings.Contains(p.body, "Você não pode ver esta página") {
		t.Errorf("who may not see the page is told %d %s", p.status, p.body)
	}
}

func TestTheAuditTrailIsToldInPortuguese(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	a.letters("e1", "e2", "e3")
	a.confirm("confirm?action=dry-run"+oneEvent, "").want(303)
	a.confirm("confirm?action=acknowledge"+oneEvent, "chamado 7").want(303)
	a.confirm("confirm?action=unacknowledge"+oneEvent, "").want(303)
	a.confirm("confirm?source=letters&state=parked&type=paid&id=e2&action=requeue", "2 done; texto livre").want(303)
	form := a.get("confirm?source=letters&state=parked&action=discard").form("act")
	form.Set("reason", "ruído")
	a.letters("e4")
	a.post("act", form).want(303)
	a.post("reveal", url.Values{"source": {"letters"}, "id": {"e4"}}).want(200)
	a.in("pt", "trail?source=letters").want(200,
		"ana consulta ao payload id: e4 0 mostrado com valores ocultos",
		"ana descarte estado: isolado; escolhidos pela chave: 2 ruído; de 2 eventos mostrados, 0 saíram da lista; 2 chegaram depois, e ficam intocados 2 descartados: 2",
		"ana recolocação na fila estado: isolado; tipo: paid; id: e2; escolhidos pela chave: 1", "recolocados na fila: 1",
		"ana reconhecimento desfeito", "com o reconhecimento desfeito: 1", "ana reconhecimento", "chamado 7", "reconhecidos: 1",
		"ana execução de teste", "concluídos: 0, com falha: 1, sem handler: 0; primeira falha: paid e1")
	a.in("pt", "action?source=letters&id=1").want(200, "O quê execução de teste", "Quais eventos estado: isolado", "falhou de novo")
}
