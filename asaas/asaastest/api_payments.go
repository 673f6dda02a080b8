package asaastest

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/fixture"
)

// Charge returns a charge as the API shows it, for the events that come next: one that the API made, for example. It
// panics for an id that there is not.
//
//	fake.Emit(fake.Charge(id).Received())
func (f *Fake) Charge(id string) *Charge {
	f.core.Lock()
	defer f.core.Unlock()
	for _, a := range f.all() {
		known := a.charges[id]
		if known == nil {
			continue
		}
		c := &Charge{Payment: known.is, Now: f.core.Time().In(asaas.Brasilia())}
		if at, err := known.at.Time(); err == nil && at.After(c.Now) {
			c.Now = at
		}
		if a.isSub {
			c.Account = a.ID
		}
		return c
	}
	panic(fmt.Sprintf("asaastest: there is no charge %q: emit its PAYMENT_CREATED, or make it by the API", id))
}

// AddCustomer adds a customer of the fake's own account, whom the API shows by the id.
func (f *Fake) AddCustomer(c asaas.Customer) {
	f.core.Change(func() { f.own.customers[c.ID] = c })
}

func (f *Fake) getCustomer(of *account, r *http.Request) (any, error) {
	c, ok := of.customers[r.PathValue("id")]
	if !ok {
		return nil, refused(http.StatusNotFound, "not_found", "O cliente informado não foi encontrado.")
	}
	return c, nil
}

// createCharge makes a charge, each time that it is called, and emits its event.
func (f *Fake) createCharge(of *account, r *http.Request) (any, error) {
	var wanted asaas.PaymentCreate
	if err := decode(r, &wanted); err != nil {
		return nil, err
	}
	now := f.core.Time().In(asaas.Brasilia())
	if err := f.checkCharge(of, wanted, day(now)); err != nil {
		return nil, err
	}
	c := NewCharge(wanted.BillingType, wanted.Value.Or(asaas.Money{}))
	c.Now = now
	if of.isSub {
		c.Account = of.ID
	}
	p := &c.Payment
	p.DateCreated, p.DueDate, p.OriginalDueDate = day(now), wanted.DueDate, wanted.DueDate
	p.Customer, p.Description = wanted.Customer, wanted.Description
	if _, ok := wanted.ExternalReference.Get(); ok {
		p.ExternalReference = wanted.ExternalReference
	}
	p.Discount, p.Interest, p.Fine = either(wanted.Discount, p.Discount), either(wanted.Interest, p.Interest), either(wanted.Fine, p.Fine)
	for _, s := range wanted.Split.Or(nil) {
		c.addSplit(s)
	}
	e := newEvent(c.Created())
	f.emitted[e.ID] = true
	of.learn(e)
	f.enqueue(of, e)
	return of.charges[p.ID].data, nil
}

// checkCharge names the first mistake, as Asaas does.
func (f *Fake) checkCharge(of *account, p asaas.PaymentCreate, today asaas.Date) error {
	_, err := p.DueDate.Time()
	switch {
	case p.Customer == "":
		return refused(http.StatusBadRequest, "invalid_customer", "O cliente deve ser informado.")
	case !p.BillingType.Known():
		return refused(http.StatusBadRequest, "invalid_billingType", "A forma de pagamento informada é inválida.")
	case p.Value.Or(asaas.Money{}).Sign() <= 0:
		return refused(http.StatusBadRequest, "invalid_value", "O valor da cobrança deve ser maior que zero.")
	case err != nil || p.DueDate < today:
		return refused(http.StatusBadRequest, "invalid_dueDate", "A data de vencimento deve ser hoje ou depois, na forma aaaa-MM-dd.")
	}
	for _, s := range p.Split.Or(nil) {
		isWallet := slices.ContainsFunc(f.all(), func(a *account) bool { return a != of && f.walletOf(a) == s.WalletID })
		if !isWallet || s.FixedValue.IsZero() == s.PercentualValue.IsZero() {
			return refused(http.StatusBadRequest, "invalid_split", "Informe a carteira de outra conta, e um valor fixo ou percentual.")
		}
	}
	if net := afterFee(p.Value.Or(asaas.Money{})); sumOf(p.Split.Or(nil), net).Cmp(net) > 0 {
		return refused(http.StatusBadRequest, "invalid_split", "O valor do split excede o valor líquido da cobrança.")
	}
	return nil
}

func (f *Fake) walletOf(a *account) string {
	if a == f.own {
		return f.WalletID
	}
	return a.WalletID
}

func sumOf(splits []asaas.SplitCreate, net asaas.Money) (sum asaas.Money) {
	for _, s := range splits {
		sum = sum.Add(partOf(s, net))
	}
	return sum
}

// partOf returns the amount of a split: its own, or its per cent of the net value.
func partOf(s asaas.SplitCreate, net asaas.Money) asaas.Money {
	if fixed, ok := s.FixedValue.Get(); ok {
		return fixed
	}
	return s.PercentualValue.Or(asaas.Percent{}).Of(net).Round(2)
}

func either[T any](a, b value.Optional[T]) value.Optional[T] {
	if _, ok := a.Get(); ok {
		return a
	}
	return b
}

// AddSplit has a part of the charge go to another wallet, once its money comes, and returns the split's id.
func (c *Charge) AddSplit(walletID string, val asaas.Money) (id string) {
	return c.addSplit(asaas.SplitCreate{WalletID: walletID, FixedValue: value.Of(val)})
}

func (c *Charge) addSplit(wanted asaas.SplitCreate) (id string) {
	id = fmt.Sprintf("00000000-0000-4000-9001-%012d", fixture.Number()%1e12)
	s := asaas.Split{
		ID: value.Of(id), WalletID: value.Of(wanted.WalletID), FixedValue: wanted.FixedValue, PercentualValue: wanted.PercentualValue,
		TotalValue: value.Of(partOf(wanted, c.Payment.NetValue.Or(asaas.Money{}))), Status: value.Of(asaas.SplitStatusPending),
		ExternalReference: wanted.ExternalReference, Description: wanted.Description,
	}
	c.Payment.Split = value.Of(append(slices.Clone(c.Payment.Split.Or(nil)), s))
	return id
}

// SplitDone settles a split: its wallet has the money. There is an event for each split.
func (c *Charge) SplitDone(id string) []byte {
	c.in(asaas.EventPaymentSplitDone, asaas.PaymentStatusReceived)
	c.Now = c.Now.Add(5 * time.Second)
	c.setSplit(id, func(s *asaas.Split) { s.Status = value.Of(asaas.SplitStatusDone) })
	return c.splitEvent(asaas.EventPaymentSplitDone, id)
}

// SplitCancelled cancels a split: its part stays in the charge's account. It may come after SplitDone.
func (c *Charge) SplitCancelled(id string, reason asaas.SplitCancellationReason) []byte {
	c.Now = c.Now.Add(5 * time.Second)
	c.setSplit(id, func(s *asaas.Split) {
		s.Status, s.CancellationReason = value.Of(asaas.SplitStatusCancelled), value.Of(reason)
	})
	return c.splitEvent(asaas.EventPaymentSplitCancelled, id)
}

// SplitBlocked has Asaas hold the splits back, because they exceed the charge's net value.
func (c *Charge) SplitBlocked() []byte {
	c.Now = c.Now.Add(5 * time.Second)
	for _, s := range c.Payment.Split.Or(nil) {
		c.setSplit(s.ID.Or(""), func(s *asaas.Split) { s.Status = value.Of(asaas.SplitStatusBlockedByValueDivergence) })
	}
	return c.event(asaas.EventPaymentSplitDivergenceBlock)
}

// setSplit changes a split of the charge.
func (c *Charge) setSplit(id string, change func(*asaas.Split)) {
	splits := slices.Clone(c.Payment.Split.Or(nil))
	i := slices.IndexFunc(splits, func(s asaas.Split) bool { return s.ID.Or("") == id })
	if i < 0 {
		panic(fmt.Sprintf("asaastest: the charge has no split %q: see AddSplit", id))
	}
	change(&splits[i])
	c.Payment.Split = value.Of(splits)
}
