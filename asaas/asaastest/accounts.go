package asaastest

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/paghooks/paghooks/asaas"
)

// Account is a sub-account of the fake's own account. It has an API key, webhooks, charges, a
// statement and a limit of requests of its own.
type Account struct {
	ID       string // account.id of its events: see Account of a [Charge]
	Name     string
	WalletID string // the wallet that splits of charges name
	APIKey   string // shown once by the API, in the answer to POST /v3/accounts
}

// AddAccount adds a sub-account, like a person in Asaas's web interface. POST /v3/accounts of the API adds one, too.
func (f *Fake) AddAccount(name string) Account {
	var added Account
	f.core.Change(func() { added = f.addAccount(name).Account })
	return added
}

func (f *Fake) addAccount(name string) *account {
	n := len(f.subs) + 1
	prefix := "$aact_hmlg_"
	if isProduction(f.APIKey) {
		prefix = "$aact_prod_"
	}
	a := newAccount(Account{
		ID:       fmt.Sprintf("00000000-0000-4000-8001-%012d", n),
		Name:     name,
		WalletID: fmt.Sprintf("00000000-0000-4000-8002-%012d", n),
		APIKey:   fmt.Sprintf("%sfake_account_%d", prefix, n),
	})
	f.subs = append(f.subs, a)
	return a
}

// account is the fake's own account, or a sub-account: the charges of all its events that were emitted, and the
// statement of their money.
type account struct {
	Account                               // of the fake's own account, the ID is that of the newest event
	charges     map[string]*charge        // by id
	customers   map[string]asaas.Customer // by id
	statement   []transaction
	requests    window // of the API
	removals    window // of removeBackoff
	isSub       bool
	wasMadeWith map[string]string // the fields of POST /v3/accounts
}

func newAccount(a Account) *account {
	return &account{Account: a, isSub: true, charges: make(map[string]*charge), customers: make(map[string]asaas.Customer)}
}

// all returns the fake's own account, and then the sub-accounts.
func (f *Fake) all() []*account { return append([]*account{f.own}, f.subs...) }

// accountOf returns the account of an event's account.id. What is not a sub-account's is the fake's own.
func (f *Fake) accountOf(id string) *account {
	for _, a := range f.subs {
		if a.ID == id {
			return a
		}
	}
	return f.own
}

// mustFindAccount returns the account of an id, or the fake's own for "".
func (f *Fake) mustFindAccount(id string) *account {
	a := f.accountOf(id)
	if id != "" && !a.isSub {
		panic(fmt.Sprintf("asaastest: there is no sub-account %q: add it by AddAccount", id))
	}
	return a
}

// keyed returns the account of an API key; nil if there is none.
func (f *Fake) keyed(key string) *account {
	if key == f.APIKey {
		return f.own
	}
	for _, a := range f.subs {
		if a.APIKey == key {
			return a
		}
	}
	return nil
}

// accountBody is a sub-account in an answer.
type accountBody struct {
	Object   string `json:"object"`
	ID       string `json:"id"`
	Name     string `json:"name"`
	Email    string `json:"email"`
	CPFCNPJ  string `json:"cpfCnpj"`
	WalletID string `json:"walletId"`
	APIKey   string `json:"apiKey,omitempty"` // answered once, when created
}

func (a *account) body() accountBody {
	return accountBody{Object: "account", ID: a.ID, Name: a.Name, Email: a.wasMadeWith["email"], CPFCNPJ: a.wasMadeWith["cpfCnpj"], WalletID: a.WalletID}
}

func (f *Fake) listAccounts(of *account, r *http.Request) (any, error) {
	if of.isSub {
		return pageOf(r, []accountBody(nil))
	}
	var all []accountBody
	for _, a := range f.subs {
		all = append(all, a.body())
	}
	return pageOf(r, all)
}

// createAccount makes a sub-account, with its webhooks.
func (f *Fake) createAccount(of *account, r *http.Request) (any, error) {
	var wanted map[string]any
	if err := decode(r, &wanted); err != nil {
		return nil, err
	}
	if of.isSub {
		return nil, refused(http.StatusForbidden, "forbidden", "Uma subconta não pode criar subcontas.")
	}
	said := make(map[string]string)
	for _, field := range []string{"name", "email", "cpfCnpj", "mobilePhone", "incomeValue", "address", "addressNumber", "province", "postalCode"} {
		if said[field] = strings.TrimSpace(fmt.Sprint(wanted[field])); wanted[field] == nil || said[field] == "" {
			return nil, refused(http.StatusBadRequest, "invalid_"+field, "O campo "+field+" deve ser informado.")
		}
	}
	for _, a := range f.subs {
		if a.wasMadeWith["email"] == said["email"] {
			return nil, refused(http.StatusBadRequest, "invalid_object", "O email "+said["email"]+" já está em uso.")
		}
	}
	if wanted["webhooks"] != nil {
		return nil, refused(http.StatusBadRequest, "invalid_webhooks", "Este Asaas de teste cria webhooks somente em POST /v3/webhooks, com a chave da subconta.")
	}
	a := f.addAccount(said["name"])
	a.wasMadeWith = said
	created := a.body()
	created.APIKey = a.APIKey
	return created, nil
}

// ClientOf returns a client of the account of an API key, like [Fake.Client]. It panics for a key that is none.
func (f *Fake) ClientOf(apiKey string) *asaas.Client {
	environment := asaas.Sandbox
	if isProduction(apiKey) {
		environment = asaas.Production
	}
	client, err := asaas.NewClient(environment, apiKey)
	if err != nil {
		panic("asaastest: " + err.Error())
	}
	client.Transport, client.Receiver = f.Transport(), receiverWay{f}
	client.Wait = f.wait
	return client
}
