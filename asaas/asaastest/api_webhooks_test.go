package asaastest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestCreatedWebhookShowsItsTokenOnce(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	id, created := create(t, fake)
	sent, _ := created["authToken"].(string)
	if len(sent) < 32 || sent != fake.Webhook(id).Token {
		t.Errorf("the token is %q", sent)
	}
	delete(created, "authToken")
	want := map[string]any{
		"id": id, "name": "orders", "url": "https://shop.example/webhooks/asaas", "email": "ops@example.com",
		"enabled": true, "interrupted": false, "apiVersion": 3.0, "hasAuthToken": true,
		"sendType": "SEQUENTIALLY", "penalizedRequestsCount": 0.0, "events": []any{"PAYMENT_RECEIVED"},
	}
	if diff := cmp.Diff(want, created); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if _, got := call(t, fake, http.MethodGet, "/v3/webhooks/"+id, ""); cmp.Diff(want, got) != "" {
		t.Errorf("got later (-want +got):\n%s", cmp.Diff(want, got))
	}
}

func TestWebhookIsCreatedAsAsked(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	status, got := call(t, fake, http.MethodPost, "/v3/webhooks", `{"name":"n","url":"http://a.example","email":"a@b","enabled":false,"interrupted":true,
		"apiVersion":2,"authToken":"`+token+`","sendType":"NON_SEQUENTIALLY","events":["PAYMENT_CREATED","TRANSFER_DONE"]}`)
	if status != http.StatusOK || got["enabled"] != false || got["interrupted"] != true || got["apiVersion"] != 2.0 ||
		got["authToken"] != token || got["sendType"] != "NON_SEQUENTIALLY" || len(got["events"].([]any)) != 2 {
		t.Errorf("answered %d: %v", status, got)
	}
}

func TestInvalidWebhooksAreRefused(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	id, _ := create(t, fake)
	for _, test := range []struct {
		why, method, body string
		want              []string
	}{
		{"nothing is there", "POST", `{}`, []string{"invalid_name", "invalid_url", "invalid_email", "invalid_sendType", "invalid_events"}},
		{"no JSON", "POST", `{"name"`, []string{"invalid_json"}},
		{"nothing is right", "PUT", `{"name":" ","url":"shop","sendType":"SOMEHOW","authToken":"short","events":[]}`, []string{
			"invalid_name", "invalid_url", "invalid_sendType", "invalid_authToken", "invalid_events",
		}},
		{"an event that does not exist", "PUT", `{"events":["PAYMENT_RECEIVED","PAYMENT_RECIEVED"]}`, []string{"invalid_events"}},
		{"a token with a space", "PUT", `{"authToken":"the token of the webhook of the test"}`, []string{"invalid_authToken"}},
		{"a token that counts", "PUT", `{"authToken":"the-token-of-the-webhook-of-the-12345"}`, []string{"invalid_authToken"}},
		{"a token that repeats", "PUT", `{"authToken":"the-tokennnn-of-the-webhook-of-the-test"}`, []string{"invalid_authToken"}},
		{"a token of 256 characters", "PUT", `{"authToken":"` + strings.Repeat("ab", 128) + `"}`, []string{"invalid_authToken"}},
		{"an API key as token", "PUT", `{"authToken":"$aact_hmlg_abcdefghabcdefghabcdefgh"}`, []string{"invalid_authToken"}},
	} {
		path := "/v3/webhooks"
		if test.method == "PUT" {
			path += "/" + id
		}
		before := fake.Webhook(id)
		status, said := call(t, fake, test.method, path, test.body)
		if diff := cmp.Diff(test.want, codes(t, said)); status != http.StatusBadRequest || diff != "" {
			t.Errorf("%s: %d, codes (-want +got):\n%s", test.why, status, diff)
		}
		if diff := cmp.Diff(before, fake.Webhook(id)); diff != "" {
			t.Errorf("%s: it changed:\n%s", test.why, diff)
		}
	}
}

func TestTokensThatFollowTheRulesAreTaken(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		strings.Repeat("ab", 16),
		strings.Repeat("ab", 127) + "c",
		"the-token-1111-of-the-webhook-of-the-test",
		"the-token-1234-of----the-aaa-webhook-of-the-test",
	} {
		fake := newFake(t)
		body := strings.Replace(newWebhook, "{", `{"authToken":"`+good+`",`, 1)
		if status, said := call(t, fake, http.MethodPost, "/v3/webhooks", body); status != http.StatusOK || said["authToken"] != good {
			t.Errorf("%s is answered %d: %v", good, status, said)
		}
	}
}

func TestAnAccountHasAtMostTenWebhooks(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	for range 10 {
		create(t, fake)
	}
	if status, said := call(t, fake, http.MethodPost, "/v3/webhooks", newWebhook); status != http.StatusBadRequest || codes(t, said)[0] != "invalid_action" {
		t.Errorf("the eleventh is answered %d: %v", status, said)
	}
}

func TestListsComeInPages(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	for range 10 {
		create(t, fake)
	}
	for _, test := range []struct {
		query, first string
		n            int
		more         bool
		limit        float64
	}{
		{"", "001", 10, false, 10},
		{"?limit=4", "001", 4, true, 4},
		{"?limit=4&offset=4", "005", 4, true, 4},
		{"?limit=4&offset=8", "009", 2, false, 4},
		{"?limit=100&offset=9", "010", 1, false, 100},
		{"?offset=10", "", 0, false, 10},
		{"?offset=2147483647", "", 0, false, 10},
	} {
		status, page := call(t, fake, http.MethodGet, "/v3/webhooks"+test.query, "")
		data := page["data"].([]any)
		if status != http.StatusOK || page["object"] != "list" || page["totalCount"] != 10.0 || page["hasMore"] != test.more ||
			page["limit"] != test.limit || len(data) != test.n {
			t.Errorf("%q is answered %d: %v", test.query, status, page)
		}
		if len(data) > 0 && !strings.HasSuffix(data[0].(map[string]any)["id"].(string), test.first) {
			t.Errorf("%q begins with %v", test.query, data[0])
		}
	}
	for _, query := range []string{"?limit=101", "?limit=0", "?limit=ten", "?offset=-1"} {
		if status, said := call(t, fake, http.MethodGet, "/v3/webhooks"+query, ""); status != http.StatusBadRequest || codes(t, said)[0] != "invalid_pagination" {
			t.Errorf("%q is answered %d: %v", query, status, said)
		}
	}
}

func TestUpdateChangesWhatPutTakes(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	id, _ := create(t, fake)
	status, got := call(t, fake, http.MethodPut, "/v3/webhooks/"+id, `{"name":"new","url":"https://new.example/","sendType":"NON_SEQUENTIALLY","enabled":false,
		"interrupted":true,"authToken":"`+token+`","events":["PAYMENT_CREATED"],"email":"new@example.com","apiVersion":2}`)
	want := map[string]any{
		"id": id, "name": "new", "url": "https://new.example/", "email": "ops@example.com",
		"enabled": false, "interrupted": true, "apiVersion": 3.0, "hasAuthToken": true,
		"sendType": "NON_SEQUENTIALLY", "penalizedRequestsCount": 0.0, "events": []any{"PAYMENT_CREATED"},
	}
	if diff := cmp.Diff(want, got); status != http.StatusOK || diff != "" {
		t.Errorf("answered %d (-want +got):\n%s", status, diff)
	}
	if fake.Webhook(id).Token != token {
		t.Error("the token did not change")
	}
	if _, again := call(t, fake, http.MethodPut, "/v3/webhooks/"+id, `{"name":null}`); cmp.Diff(want, again) != "" {
		t.Errorf("null and nothing change something:\n%s", cmp.Diff(want, again))
	}
}

func TestQueueIsResumedThroughTheAPI(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	id := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	fake.Advance(time.Hour)
	if _, got := call(t, fake, http.MethodGet, "/v3/webhooks/"+id, ""); got["penalizedRequestsCount"] != 7.0 || got["interrupted"] != false {
		t.Errorf("after an hour: %v", got)
	}
	fake.Advance(day)
	if _, got := call(t, fake, http.MethodGet, "/v3/webhooks/"+id, ""); got["penalizedRequestsCount"] != 15.0 || got["interrupted"] != true {
		t.Errorf("after a day: %v", got)
	}
	s.answers(http.StatusOK)
	if status, got := call(t, fake, http.MethodPut, "/v3/webhooks/"+id, `{"interrupted":false}`); status != http.StatusOK || got["penalizedRequestsCount"] != 0.0 {
		t.Errorf("answered %d: %v", status, got)
	}
	fake.Settle()
	if len(of(fake, asaastest.Resumed)) != 1 || len(of(fake, asaastest.Delivered)) != 1 {
		t.Errorf("it happened:\n%s", lines(fake.Timeline()))
	}
}

func TestDisabledWebhookKeepsItsQueueAndGetsNothingNew(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	id := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	fake.Settle()
	s.answers(http.StatusOK)
	call(t, fake, http.MethodPut, "/v3/webhooks/"+id, `{"enabled":false}`)
	fake.Emit(paid("evt_2"))
	fake.Advance(day)
	if n := len(s.ids()); n != 1 {
		t.Errorf("%d attempts while disabled", n-1)
	}
	call(t, fake, http.MethodPut, "/v3/webhooks/"+id, `{"enabled":true}`)
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_1", "evt_1"}, s.ids()); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
}

func TestRemoveBackoffAnswers204(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}"} {
		s, fake := newShop(http.StatusInternalServerError), newFake(t)
		id := fake.AddWebhook(asaastest.Webhook{Handler: s})
		fake.Emit(paid("evt_1"))
		fake.Settle()
		s.answers(http.StatusOK)
		answer := ask(t, fake, newRequest(t, fake, http.MethodPost, "/v3/webhooks/"+id+"/removeBackoff", body))
		if answer.Code != http.StatusNoContent || answer.Body.Len() != 0 {
			t.Errorf("answered %d %q", answer.Code, answer.Body)
		}
		fake.Settle()
		if fake.Webhook(id).Pending != 0 {
			t.Error("it was not delivered at once")
		}
	}
}

func TestDeletedWebhookIsGone(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	id := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	status, said := call(t, fake, http.MethodDelete, "/v3/webhooks/"+id, "")
	if diff := cmp.Diff(map[string]any{"deleted": true, "id": id}, said); status != http.StatusOK || diff != "" {
		t.Errorf("answered %d (-want +got):\n%s", status, diff)
	}
	fake.Settle()
	if n := len(s.ids()); n != 0 {
		t.Errorf("%d delivered", n)
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		if status, said := call(t, fake, method, "/v3/webhooks/"+id, ""); status != http.StatusNotFound || codes(t, said)[0] != "not_found" {
			t.Errorf("%s is answered %d: %v", method, status, said)
		}
	}
	if status, _ := call(t, fake, http.MethodPost, "/v3/webhooks/"+id+"/removeBackoff", "{}"); status != http.StatusNotFound {
		t.Errorf("removeBackoff is answered %d", status)
	}
	if next, _ := create(t, fake); next == id {
		t.Error("its id is given again")
	}
}
