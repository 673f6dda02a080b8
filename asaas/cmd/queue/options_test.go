package queue

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestWrongUseExits2AndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why  string
		args []string
		env  map[string]string // set beside what is right
		says string
	}{
		{"no command", nil, nil, "give a verb: asaas-queue help VERB has all about one"},
		{"another command", []string{"repair"}, nil, `there is no verb "repair": asaas-queue help prints them`},
		{"no id", []string{"recover"}, nil, "recover needs the id of one webhook: status prints them"},
		{"two ids", []string{"resume", "a", "b"}, nil, `"b" is too much: asaas-queue help resume prints what it takes`},
		{"an id for status", []string{"status", "a"}, nil, `"a" is too much`},
		{"a flag that does not exist", []string{"status", "-frobnicate"}, nil, "frobnicate"},
		{"-every is 0", []string{"recover", "a", "-every", "0s"}, nil, "it is no time such as 45d, 12h or 5s"},
		{"-handled for another command", []string{"recover", "a", "-handled", "-"}, nil, "flag provided but not defined: -handled: asaas-queue help recover prints the flags"},
		{"-last-event for another command", []string{"events", "a", "-last-event", "2026-11-20"}, nil, "flag provided but not defined: -last-event"},
		{"no key", []string{"status"}, map[string]string{"ASAAS_API_KEY": ""}, "ASAAS_API_KEY: the API key is empty"},
		{"a key of production", []string{"status"}, map[string]string{"ASAAS_API_KEY": "$aact_prod_1"}, "ASAAS_API_KEY is a key of production: leave -sandbox out, or set a key of the sandbox"},
		{"no token", []string{"recover", "a", "-yes"}, map[string]string{"ASAAS_WEBHOOK_TOKEN": " "}, "ASAAS_WEBHOOK_TOKEN is not set: set it"},
		{"a base URL that is none", []string{"status"}, map[string]string{"ASAAS_BASE_URL": "asaas"}, "ASAAS_BASE_URL is not the API's address"},
	} {
		a := newAccount(t)
		maps.Copy(a.env, test.env)
		status, out, complaints := a.queue(t, test.args...)
		if status != 2 || out != "" || !strings.Contains(complaints, test.says) {
			t.Errorf("%s: exit status %d, prints %q, %q", test.why, status, out, complaints)
		}
	}
}

func TestAnAsaasThatDoesNotAnswerExits1(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why   string
		fault asaastest.APIFault
		says  string
	}{
		{"a gateway", asaastest.APIPage(http.StatusBadGateway), "it was answered with 502, the answer is HTML"},
		{"trouble", asaastest.APIStatus(http.StatusInternalServerError), "it was answered with 500"},
		{"half an answer", asaastest.APICutJSON, "the answer is not the JSON that it should be"},
		{"a reset", asaastest.APIReset, "there is no answer"},
		{"a key without permission", asaastest.APIForbidden, "the API key has no permission for webhooks"},
	} {
		a := newAccount(t)
		id, _, _, _ := a.webhooks()
		a.wait = atOnce
		for _, args := range [][]string{
			{"status"},
			{"events", id},
			{"remove-penalty", id, "-yes"},
			{"resume", id, "-yes"},
			{"recover", id, "-yes"},
		} {
			a.fake.InjectAPI(test.fault, test.fault, test.fault) // what only reads is sent three times
			status, out, complaints := a.queue(t, args...)
			if status != 1 || out != "" || !strings.Contains(complaints, test.says) {
				t.Errorf("%s: %v: exit status %d, prints %q, %q", test.why, args, status, out, complaints)
			}
		}
	}
}

func TestAWebhookThatIsNotThereExits3(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	for _, command := range []string{"events", "remove-penalty", "resume", "recover"} {
		args := []string{command, "no-such-id"}
		if command != "events" {
			args = append(args, "-yes")
		}
		status, out, complaints := a.queue(t, args...)
		if status != 3 || out != "" || !strings.Contains(complaints, "it was answered with 404") || !strings.Contains(complaints, "see the ids of its webhooks") {
			t.Errorf("%s: exit status %d, prints %q, %q", command, status, out, complaints)
		}
	}
}
