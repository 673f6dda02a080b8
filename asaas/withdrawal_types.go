package asaas

import (
	"bytes"
	"encoding/json"

	"github.com/paghooks/paghooks/idem/optional"
)

// WithdrawalBill is a bill about to be paid: the Bill of an event, and more.
type WithdrawalBill struct {
	Bill
	// Whether somebody has to authorize it first, in Asaas's app.
	AwaitingCriticalActionAuthorization optional.Value[bool] `json:"awaitingCriticalActionAuthorization,omitzero"`
	// The bank that issued the bill.
	BankID optional.Value[Text]           `json:"bankId,omitzero"`
	Bank   optional.Value[WithdrawalBank] `json:"bank,omitzero"`
}

// WithdrawalBank is the bank that issued a bill.
type WithdrawalBank struct {
	// Always "bank".
	Object optional.Value[string] `json:"object,omitzero"`
	// Asaas's own id of the bank.
	ID optional.Value[Text] `json:"id,omitzero"`
	// Three digits.
	Code optional.Value[Text]   `json:"code,omitzero"`
	Name optional.Value[string] `json:"name,omitzero"`
}

// WithdrawalPix is a Pix about to be sent: the payment of a QR code, or the
// refund of a Pix that was received.
type WithdrawalPix struct {
	// A UUID.
	ID string `json:"id"`
	// The amount in reais.
	Value optional.Value[Money] `json:"value,omitzero"`
	// The change, where cash is taken out at a shop together with a purchase.
	ChangeValue optional.Value[Money] `json:"changeValue,omitzero"`
	// How much of it was refunded.
	RefundedValue optional.Value[Money] `json:"refundedValue,omitzero"`
	// Asaas's fee.
	ChargedFeeValue optional.Value[Money] `json:"chargedFeeValue,omitzero"`
	// DEBIT, CREDIT, CREDIT_REFUND, DEBIT_REFUND or DEBIT_REFUND_CANCELLATION.
	Type optional.Value[string] `json:"type,omitzero"`
	// AWAITING_REQUEST, as a rule.
	Status optional.Value[string] `json:"status,omitzero"`
	// MANUAL, ADDRESS_KEY, STATIC_QRCODE, DYNAMIC_QRCODE,
	// PAYMENT_INITIATION_SERVICE or AUTOMATIC_RECURRING.
	OriginType optional.Value[string] `json:"originType,omitzero"`
	// WITHDRAWAL or CHANGE, where cash is taken out at a shop.
	Finality optional.Value[string] `json:"finality,omitzero"`
	// The Pix's id at the central bank.
	EndToEndIdentifier optional.Value[string] `json:"endToEndIdentifier,omitzero"`
	// What joins it to the QR code.
	ConciliationIdentifier optional.Value[string] `json:"conciliationIdentifier,omitzero"`
	// The UUID of the transfer; refunds have it.
	TransferID optional.Value[string] `json:"transferId,omitzero"`
	// The id of the charge that the refund is of, "pay_" and more.
	Payment optional.Value[string] `json:"payment,omitzero"`
	// Your own id for it.
	ExternalReference optional.Value[string] `json:"externalReference,omitzero"`
	// When it was asked for, and when it takes effect. Refunds spell them
	// 17/12/2024 15:27:42.
	DateCreated   optional.Value[DateTime] `json:"dateCreated,omitzero"`
	EffectiveDate optional.Value[DateTime] `json:"effectiveDate,omitzero"`
	// The day it is to be sent.
	ScheduledDate optional.Value[Date] `json:"scheduledDate,omitzero"`
	// The text that the receiver sees.
	Description optional.Value[string] `json:"description,omitzero"`
	// The page with the receipt, once it is sent.
	TransactionReceiptURL optional.Value[string] `json:"transactionReceiptUrl,omitzero"`
	// Why it was refused.
	RefusalReason optional.Value[string] `json:"refusalReason,omitzero"`
	// Whether it can still be canceled.
	CanBeCanceled optional.Value[bool] `json:"canBeCanceled,omitzero"`
	// Whether it can be refunded, and why not.
	CanBeRefunded        optional.Value[bool]   `json:"canBeRefunded,omitzero"`
	RefundDisabledReason optional.Value[string] `json:"refundDisabledReason,omitzero"`
	// The Pix key, and its kind: CPF, CNPJ, EMAIL, PHONE or EVP.
	AddressKey     optional.Value[string] `json:"addressKey,omitzero"`
	AddressKeyType optional.Value[string] `json:"addressKeyType,omitzero"`
	// The Pix that is refunded.
	OriginalTransaction optional.Value[WithdrawalPixOriginal] `json:"originalTransaction,omitzero"`
	// Who gets the money.
	ExternalAccount optional.Value[WithdrawalPixAccount] `json:"externalAccount,omitzero"`
	// The QR code that is paid; null in a refund.
	QrCode optional.Value[WithdrawalPixQrCode] `json:"qrCode,omitzero"`
}

// WithdrawalPixAccount is who gets a Pix.
type WithdrawalPixAccount struct {
	// The institution's number in the payment system, 8 digits: sent as a
	// number, which has lost its zeros in front.
	Ispb     optional.Value[Text]   `json:"ispb,omitzero"`
	IspbName optional.Value[string] `json:"ispbName,omitzero"`
	// The owner's name.
	Name optional.Value[string] `json:"name,omitzero"`
	// The owner's CPF or CNPJ; parts of a CPF are masked.
	CpfCnpj optional.Value[Text] `json:"cpfCnpj,omitzero"`
	// The Pix key, and its kind: CPF, CNPJ, EMAIL, PHONE or EVP.
	AddressKey     optional.Value[string] `json:"addressKey,omitzero"`
	AddressKeyType optional.Value[string] `json:"addressKeyType,omitzero"`
	// The branch, the account, its check digit, and its kind, such as
	// CHECKING_ACCOUNT; refunds have them.
	Agency       optional.Value[Text]   `json:"agency,omitzero"`
	Account      optional.Value[Text]   `json:"account,omitzero"`
	AccountDigit optional.Value[Text]   `json:"accountDigit,omitzero"`
	AccountType  optional.Value[string] `json:"accountType,omitzero"`
}

// WithdrawalPixQrCode is the QR code that is about to be paid.
type WithdrawalPixQrCode struct {
	// Who was asked to pay.
	Payer optional.Value[WithdrawalPixPayer] `json:"payer,omitzero"`
	// What joins it to the Pix.
	ConciliationIdentifier optional.Value[string] `json:"conciliationIdentifier,omitzero"`
	// What the QR code asks for, what is taken off it, and what being late adds.
	OriginalValue optional.Value[Money] `json:"originalValue,omitzero"`
	Discount      optional.Value[Money] `json:"discount,omitzero"`
	Interest      optional.Value[Money] `json:"interest,omitzero"`
	Fine          optional.Value[Money] `json:"fine,omitzero"`
	// The last day to pay without fine and interest.
	DueDate optional.Value[Date] `json:"dueDate,omitzero"`
	// When it can no longer be paid.
	ExpirationDate optional.Value[DateTime] `json:"expirationDate,omitzero"`
	// The receiver's text.
	Description optional.Value[string] `json:"description,omitzero"`
}

// WithdrawalPixPayer is who a QR code asks to pay.
type WithdrawalPixPayer struct {
	Name    optional.Value[string] `json:"name,omitzero"`
	CpfCnpj optional.Value[Text]   `json:"cpfCnpj,omitzero"`
}

// WithdrawalPixOriginal is the Pix that a refund is of.
type WithdrawalPixOriginal struct {
	// A UUID.
	ID optional.Value[string] `json:"id,omitzero"`
	// The Pix's id at the central bank.
	EndToEndIdentifier optional.Value[string] `json:"endToEndIdentifier,omitzero"`
	// The amount in reais.
	Value optional.Value[Money] `json:"value,omitzero"`
	// When it took effect.
	EffectiveDate optional.Value[DateTime] `json:"effectiveDate,omitzero"`
}

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
