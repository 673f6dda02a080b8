package queue

import (
	"strings"
	"testing"
)

func TestAWebhookThatIsDisabledIsEnabledAsTyped(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	_, disabled, _, stopped := a.webhooks()
	status, _, complaints := a.queue(t, "resume", disabled, "-yes")
	advice := "asaas-queue enable " + disabled
	if status != 1 || !strings.Contains(complaints, advice) {
		t.Fatalf("resume: exit status %d, %s", status, complaints)
	}
	if status, out, complaints := a.queue(t, "enable", disabled); status != 2 || out != "" || !strings.Contains(complaints, "give -yes") {
		t.Errorf("where nobody is asked: exit status %d, %q, %q", status, out, complaints)
	}
	status, out, complaints := a.queue(t, append(strings.Fields(advice)[1:], "-yes")...)
	if status != 0 || !strings.HasPrefix(out, "the webhook is enabled\nnext: what happened while it was disabled never comes as events: asaas-queue reconcile -since TIME") {
		t.Errorf("enable: exit status %d, %q, %q", status, out, complaints)
	}
	if status, out, _ := a.queue(t, "resume", disabled, "-yes"); status != 0 || !strings.Contains(out, "nothing is held up") {
		t.Errorf("afterwards: exit status %d, %q", status, out)
	}

	disable(a, stopped)
	status, out, _ = a.queue(t, "enable", stopped, "-yes", "-json")
	if status != 0 || !strings.HasPrefix(out, `{"id":"`+stopped+`","step":"enabled"}`) || !strings.Contains(out, "its queue is stopped: asaas-queue recover "+stopped) {
		t.Errorf("one that was stopped, too: exit status %d, %q", status, out)
	}
}

func TestOfAWebhookThatWasDeletedItSaysHowToMakeItAgain(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	fine, _, _, _ := a.webhooks()
	if err := a.fake.Client().DeleteWebhook(t.Context(), fine); err != nil {
		t.Fatal(err)
	}
	status, out, complaints := a.queue(t, "enable", fine, "-yes")
	if status != 3 || out != "" || !strings.Contains(complaints, "asaas-queue apply -name NAME -url URL -email ADDRESS -handled FILE") {
		t.Errorf("exit status %d, %q, %q", status, out, complaints)
	}
}
