package asaas

import "errors"

// check returns an error for JSON that is not a page of charges.
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

// check returns an error for JSON that is not a page of the statement.
func (p *TransactionPage) check() error {
	if p.Data.IsZero() {
		return errors.New("it is no list: see the API's address")
	}
	return nil
}

// check returns an error for JSON that is not a charge.
func (p *Payment) check() error {
	if p.ID == "" || p.Status == "" {
		return errors.New("it is no charge, it has no id or no status: see the API's address")
	}
	return nil
}
