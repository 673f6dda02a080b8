package asaas

import "errors"

// check tells a page of charges from other JSON.
func (p *PaymentPage) check() error {
	data, ok := p.Data.Get()
	if !ok {
		return errors.New("it is no list: see the API's address")
	}
	for i := range data {
		if err := data[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// check tells a page of the statement from other JSON.
func (p *TransactionPage) check() error {
	if p.Data.IsZero() {
		return errors.New("it is no list: see the API's address")
	}
	return nil
}

// check tells a charge from other JSON.
func (p *Payment) check() error {
	if p.ID == "" || p.Status == "" {
		return errors.New("it is no charge, it has no id or no status: see the API's address")
	}
	return nil
}
