package asaastest

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/fixture"
)

func (f *Fake) listWebhooks(of *account, r *http.Request) (any, error) {
	var all []webhookBody
	for _, w := range f.webhooksOf(of) {
		all = append(all, f.body(w))
	}
	return pageOf(r, all)
}

func (f *Fake) getWebhook(of *account, r *http.Request) (any, error) {
	w, err := f.named(of, r)
	if err != nil {
		return nil, err
	}
	return f.body(w), nil
}

func (f *Fake) createWebhook(of *account, r *http.Request) (any, error) {
	wanted := webhookBody{Enabled: true, APIVersion: 3}
	if err := decode(r, &wanted); err != nil {
		return nil, err
	}
	if wanted.Events == nil {
		wanted.Events = []asaas.EventType{}
	}
	if err := f.check(&wanted, nil); err != nil {
		return nil, err
	}
	if len(f.webhooksOf(of)) >= maxWebhooks {
		return nil, refused(http.StatusBadRequest, "invalid_action", "O limite de 10 webhooks por conta foi atingido.")
	}
	c := Webhook{Token: cmp.Or(wanted.AuthToken, newToken()), Email: wanted.Email, APIVersion: wanted.APIVersion, Interrupted: wanted.Interrupted}
	wanted.apply(&c)
	w := f.add(of, c)
	created := f.body(w)
	created.AuthToken = w.Token
	return created, nil
}

// updateWebhook leaves a member that is null or missing as it is, and those that PUT does not take.
func (f *Fake) updateWebhook(of *account, r *http.Request) (any, error) {
	w, err := f.named(of, r)
	if err != nil {
		return nil, err
	}
	wanted := f.body(w)
	wanted.Events = nil
	if err := decode(r, &wanted); err != nil {
		return nil, err
	}
	wanted.Email = w.Email
	wanted.APIVersion = w.APIVersion
	if err := f.check(&wanted, w.Events); err != nil {
		return nil, err
	}
	wanted.apply(&w.Webhook)
	f.setInterrupted(w, wanted.Interrupted)
	return f.body(w), nil
}

func (f *Fake) deleteWebhook(of *account, r *http.Request) (any, error) {
	w, err := f.named(of, r)
	if err != nil {
		return nil, err
	}
	f.webhooks = slices.DeleteFunc(slices.Clone(f.webhooks), func(other *webhook) bool { return other == w })
	return map[string]any{"deleted": true, "id": w.ID}, nil
}

func (f *Fake) relieveWebhook(of *account, r *http.Request) (any, error) {
	if err := decode(r, new(struct{})); err != nil {
		return nil, err
	}
	w, err := f.named(of, r)
	if err != nil {
		return nil, err
	}
	f.removeBackoff(w)
	return nil, nil
}

// named returns the webhook that the path names.
func (f *Fake) named(of *account, r *http.Request) (*webhook, error) {
	if w := f.find(r.PathValue("id")); w != nil && w.of == of {
		return w, nil
	}
	return nil, refused(http.StatusNotFound, "not_found", "O webhook informado não foi encontrado.")
}

// webhookBody is a webhook in a request or an answer.
type webhookBody struct {
	ID                     string            `json:"id"`
	Name                   string            `json:"name"`
	URL                    string            `json:"url"`
	Email                  string            `json:"email"`
	Enabled                bool              `json:"enabled"`
	Interrupted            bool              `json:"interrupted"`
	APIVersion             int               `json:"apiVersion"`
	HasAuthToken           bool              `json:"hasAuthToken"`
	AuthToken              string            `json:"authToken,omitempty"` // answered once, when created
	SendType               SendType          `json:"sendType"`
	PenalizedRequestsCount int               `json:"penalizedRequestsCount"`
	Events                 []asaas.EventType `json:"events"`
}

func (f *Fake) body(w *webhook) webhookBody {
	events := w.Events
	if events == nil {
		events = Types()
	}
	return webhookBody{
		ID: w.ID, Name: w.Name, URL: w.URL, Email: w.Email,
		Enabled: !w.Disabled, Interrupted: w.Interrupted, APIVersion: w.APIVersion,
		HasAuthToken: w.Token != "", SendType: w.SendType,
		PenalizedRequestsCount: w.penalized(), Events: slices.Clone(events),
	}
}

// check names all that is wrong at once. Of event types those exist that this
// module knows, and those that the webhook has: they may be newer.
func (f *Fake) check(b *webhookBody, has []asaas.EventType) error {
	var all []problem
	demand := func(ok bool, code, description string) {
		if !ok {
			all = append(all, problem{code, description})
		}
	}
	demand(strings.TrimSpace(b.Name) != "", "invalid_name", "O nome deve ser informado.")
	demand(fixture.IsURL(b.URL), "invalid_url", "A URL informada é inválida.")
	demand(strings.Count(b.Email, "@") == 1 && !strings.ContainsAny(b.Email, " \t\r\n"), "invalid_email", "O e-mail informado é inválido.")
	demand(b.SendType == Sequentially || b.SendType == NonSequentially, "invalid_sendType", "O tipo de envio deve ser SEQUENTIALLY ou NON_SEQUENTIALLY.")
	demand(b.APIVersion == 2 || b.APIVersion == 3, "invalid_apiVersion", "A versão da API deve ser 2 ou 3.")
	demand(b.AuthToken == "" || isToken(b.AuthToken), "invalid_authToken", "O token de autenticação deve ter de 32 a 255 caracteres, sem espaços, "+
		"sem sequências de números, sem quatro letras iguais seguidas, e não pode ser uma chave de API.")
	demand(b.Events == nil || len(b.Events) > 0, "invalid_events", "Informe ao menos um evento.")
	for _, e := range b.Events {
		demand(slices.Contains(Types(), e) || slices.Contains(has, e), "invalid_events", fmt.Sprintf("O evento %s não existe.", e))
		demand(!f.NoPixAutomatic || !strings.HasPrefix(string(e), "PIX_AUTOMATIC_"), "invalid_events", fmt.Sprintf("O evento %s não está disponível para a conta.", e))
	}
	if all == nil {
		return nil
	}
	return &refusal{http.StatusBadRequest, all}
}

// isToken holds the rules of
// https://docs.asaas.com/docs/create-new-webhook-via-api.
func isToken(s string) bool {
	long := len(s) >= 32 && len(s) <= 255
	return long && !strings.ContainsAny(s, " \t\r\n") && !strings.HasPrefix(s, "$aact_") && !hasPattern(s)
}

// hasPattern finds 12345 and the like, and aaaa and the like.
func hasPattern(s string) bool {
	same, rising := 1, 1
	for i := 1; i < len(s); i++ {
		same, rising = same+1, rising+1
		if s[i] != s[i-1] || !isLetter(s[i]) {
			same = 1
		}
		if s[i] != s[i-1]+1 || s[i-1] < '0' || s[i] > '9' {
			rising = 1
		}
		if same == 4 || rising == 5 {
			return true
		}
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// newToken makes the token of a webhook that was created without one.
func newToken() string {
	for {
		if token := rand.Text() + rand.Text(); isToken(token) {
			return token
		}
	}
}

// apply changes what a PUT can change, but for a pause.
func (b *webhookBody) apply(w *Webhook) {
	w.Name, w.URL, w.SendType, w.Disabled = b.Name, b.URL, b.SendType, !b.Enabled
	w.Token = cmp.Or(b.AuthToken, w.Token)
	if b.Events != nil {
		w.Events = b.Events
	}
}
