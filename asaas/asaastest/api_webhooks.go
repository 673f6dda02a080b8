package asaastest

import (
	"net/http"
	"slices"
)

func (f *Fake) listWebhooks(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	var all []webhookBody
	for _, w := range f.webhooks {
		all = append(all, f.body(w))
	}
	return pageOf(r, all)
}

func (f *Fake) getWebhook(r *http.Request) (any, error) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	w := f.find(r.PathValue("id"))
	if w == nil {
		return nil, errNoWebhook
	}
	return f.body(w), nil
}

func (f *Fake) createWebhook(r *http.Request) (result any, err error) {
	var wanted webhookRequest
	if err := decode(r, &wanted); err != nil {
		return nil, err
	}
	if err := wanted.check(true, nil); err != nil {
		return nil, err
	}
	f.change(func() {
		if len(f.webhooks) >= maxWebhooks {
			err = refused(http.StatusBadRequest, "invalid_action", "O limite de 10 webhooks por conta foi atingido.")
			return
		}
		var c Webhook
		wanted.apply(&c)
		orElse(&c.Token, newToken())
		w := f.add(c)
		created := f.body(w)
		created.AuthToken = w.Token
		result = created
	})
	return result, err
}

func (f *Fake) updateWebhook(r *http.Request) (any, error) {
	var wanted webhookRequest
	if err := decode(r, &wanted); err != nil {
		return nil, err
	}
	wanted.Email, wanted.APIVersion = nil, nil // which PUT does not take
	return f.withWebhook(r, func(w *webhook) (any, error) {
		if err := wanted.check(false, w.Events); err != nil {
			return nil, err
		}
		interrupted := w.Interrupted
		wanted.apply(&w.Webhook)
		wish := w.Interrupted
		w.Interrupted = interrupted
		f.setInterrupted(w, wish)
		return f.body(w), nil
	})
}

func (f *Fake) deleteWebhook(r *http.Request) (any, error) {
	return f.withWebhook(r, func(w *webhook) (any, error) {
		f.webhooks = slices.DeleteFunc(slices.Clone(f.webhooks), func(other *webhook) bool { return other == w })
		return map[string]any{"deleted": true, "id": w.ID}, nil
	})
}

func (f *Fake) relieveWebhook(r *http.Request) (any, error) {
	if err := decode(r, new(struct{})); err != nil {
		return nil, err
	}
	return f.withWebhook(r, func(w *webhook) (any, error) {
		f.removeBackoff(w)
		return noContent{}, nil
	})
}

// withWebhook changes the webhook that the path names.
func (f *Fake) withWebhook(r *http.Request, do func(*webhook) (any, error)) (result any, err error) {
	f.change(func() {
		w := f.find(r.PathValue("id"))
		if w == nil {
			err = errNoWebhook
			return
		}
		result, err = do(w)
	})
	return result, err
}

var errNoWebhook = refused(http.StatusNotFound, "not_found", "O webhook informado não foi encontrado.")
