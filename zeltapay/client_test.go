package zeltapay_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/zeltapay"
)

// api is a transport that answers each request with a handler, without a socket.
type api http.HandlerFunc

func (a api) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	return w.Result(), nil
}

const apiKey = "zp_key_1"

// completed reads the list to its end or its first error.
func completed(t *testing.T, a api) (ids []string, err error) {
	t.Helper()
	client, err := zeltapay.NewClient(apiKey)
	if err != nil {
		t.Fatal(err)
	}
	client.Transport = a
	for link, err := range client.Completed(t.Context()) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, link.ID)
	}
	return ids, nil
}

func link(id string) string {
	return fmt.Sprintf(`{"id":%q,"status":"completed","amount":9900,"isTest":false,"metadata":{"orderId":"A-1"},"completedAt":null,"new":1}`, id)
}

func page(links ...string) string {
	return `{"success":true,"data":[` + strings.Join(links, ",") + `]}`
}

func TestEachCompletedLinkIsReadOnce(t *testing.T) {
	t.Parallel()
	test := `{"id":"pl_t","status":"completed","amount":100,"isTest":true}`
	for _, c := range []struct {
		name  string
		pages map[string]string // by offset
		want  []string
	}{
		{"none", map[string]string{"0": page()}, nil},
		{"the list in data", map[string]string{"0": page(link("pl_1"), link("pl_2")), "2": page()}, []string{"pl_1", "pl_2"}},
		{
			"the list in data.paymentLinks, as another page has it",
			map[string]string{"0": `{"success":true,"data":{"total":1,"paymentLinks":[` + link("pl_1") + `]}}`, "1": `{"success":true,"data":{"paymentLinks":[]}}`},
			[]string{"pl_1"},
		},
		{"a page shorter than asked for is not the last", map[string]string{"0": page(link("pl_1")), "1": page(link("pl_2")), "2": page()}, []string{"pl_1", "pl_2"}},
		{"a link moves to the next page as others are paid", map[string]string{"0": page(link("pl_1")), "1": page(link("pl_1"), link("pl_2")), "3": page()}, []string{"pl_1", "pl_2"}},
		{"tests moved no money", map[string]string{"0": page(test, link("pl_1")), "2": page()}, []string{"pl_1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ids, err := completed(t, func(w http.ResponseWriter, r *http.Request) {
				q := r.URL.Query()
				if r.Method != "GET" || r.URL.Host+r.URL.Path != "api-pay.zelta.dev/v1/payment-links" || r.Header.Get("X-API-Key") != apiKey ||
					q.Get("status") != "completed" || q.Get("isTest") != "false" || q.Get("lim") == "" {
					t.Errorf("%s %s", r.Method, r.URL)
				}
				_, _ = io.WriteString(w, c.pages[q.Get("off")])
			})
			if diff := cmp.Diff(c.want, ids); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
}

// Where part of the list may be missing, or is not what it was asked to be, the reading ends with an error.
func TestAListThatCannotBeTrustedIsAnError(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"a wrong key", 404, `{"success":false,"message":"no such key ` + apiKey + `","error":{"code":"ERR_API_KEY_NOT_FOUND"}}`, `404 ("ERR_API_KEY_NOT_FOUND", "no such key [API key]")`},
		{"an error with the status of a success", 200, `{"success":false,"message":"no"}`, `200 ("", "no")`},
		{"a page of a proxy", 502, `<html>`, "502"},
		{"a redirect, with which the key would go", 302, ``, "302"},
		{"no JSON", 200, `<html>`, "not the JSON"},
		{"no list", 200, `{"success":true,"data":{"links":[]}}`, "no list of links"},
		{"a null for a link", 200, page("null"), "without an id"},
		{"a link without an id", 200, page(`{"status":"completed","amount":1}`), "without an id"},
		{"a link without an amount", 200, page(`{"id":"pl_1","status":"completed"}`), "without an id or an amount"},
		{"the status is not asked for there", 200, page(`{"id":"pl_1","status":"pending","amount":1}`), "not completed"},
		{"the offset is not asked for there", 200, page(link("pl_1")), "does not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := completed(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", "http://elsewhere.example/")
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "zeltapay: ") || strings.Contains(err.Error(), apiKey) {
				t.Errorf("the error is %v; want %q in it", err, c.want)
			}
		})
	}
}

func TestAPauseThatZeltaPayAsksForIsWaitedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		refused int
		reset   func() string
		want    time.Duration
		ok      bool
	}{
		{"until the limit allows more", 1, func() string { return strconv.FormatInt(time.Now().Add(20*time.Second).Unix(), 10) }, 20 * time.Second, true},
		{"a minute where it is not said", 1, func() string { return "" }, 61 * time.Second, true},
		{"not for a time of another unit", 1, func() string { return strconv.FormatInt(time.Now().UnixMilli(), 10) }, 61 * time.Second, true},
		{"not for ever", 100, func() string { return "" }, 3 * 61 * time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began, refused := time.Now(), 0
				_, err := completed(t, func(w http.ResponseWriter, _ *http.Request) {
					if refused++; refused <= c.refused {
						w.Header().Set("RateLimit-Reset", c.reset())
						w.WriteHeader(http.StatusTooManyRequests)
						return
					}
					_, _ = io.WriteString(w, page())
				})
				if waited := time.Since(began); waited != c.want || (err == nil) != c.ok {
					t.Errorf("it waited %s and returned %v", waited, err)
				}
			})
		})
	}
}

func TestAClientNeedsAKeyAndNeverPrintsIt(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", " ", "a key", "key\n", "chave-ç"} {
		if _, err := zeltapay.NewClient(key); err == nil || key != "" && strings.Contains(err.Error(), key) && key != " " {
			t.Errorf("NewClient(%q) = %v", key, err)
		}
	}
	client, err := zeltapay.NewClient(apiKey)
	if printed := fmt.Sprintf("%v %+v %#v", client, client, client); err != nil || strings.Contains(printed, apiKey) {
		t.Errorf("%v, %v", printed, err)
	}
}
