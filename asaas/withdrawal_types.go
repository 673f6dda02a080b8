package asaas

import (
	"bytes"
	"encoding/json"
)

// WithdrawalSplit is a split that was just settled. Asaas does not document its
// fields: those of a charge's split are set as far as they are there and fit.
type WithdrawalSplit struct {
	Split
	Raw json.RawMessage // the whole object
}

// UnmarshalJSON implements [json.Unmarshaler]. It takes any JSON.
func (s *WithdrawalSplit) UnmarshalJSON(data []byte) error {
	s.Raw = bytes.Clone(data)
	_ = json.Unmarshal(data, &s.Split)
	return nil
}

// MarshalJSON implements [json.Marshaler]. It writes Raw.
func (s WithdrawalSplit) MarshalJSON() ([]byte, error) { return s.Raw.MarshalJSON() }
