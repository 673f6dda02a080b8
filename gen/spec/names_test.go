package spec

import (
	"go/token"
	"testing"
)

func TestNamesInGo(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, want, why string }{
		{"PAYMENT_RECEIVED", "PaymentReceived", "an event type of Asaas"},
		{"payment.success", "PaymentSuccess", "an event type of Zelta Pay"},
		{"webhook.ping", "WebhookPing", "another one"},
		{"invoiceUrl", "InvoiceURL", "an initialism"},
		{"id", "ID", "nothing but an initialism"},
		{"pixQrCodeId", "PixQrCodeID", "Pix and Qr are no initialisms"},
		{"PIX", "Pix", "Pix is a name"},
		{"cpfCnpj", "CpfCnpj", "so are these"},
		{"ok", "OK", "as Go writes it"},
		{"PaymentEvent", "PaymentEvent", "a name of Go stays"},
		{"WebhookID", "WebhookID", "with its initialism"},
		{"URLPath", "URLPath", "the last capital of a run starts the next word"},
		{"REFUNDED_2", "Refunded2", "a digit"},
		{"été_fermé", "ÉtéFermé", "letters that are not ASCII"},
		{"in-between.or so", "InBetweenOrSo", "every separator"},
		{"identifier", "Identifier", "an initialism is a whole word"},
		{"--", "", "nothing to make a name of"},
	}
	for _, test := range tests {
		if got := GoName(test.name); got != test.want {
			t.Errorf("goName(%q) = %q, want %q: %s", test.name, got, test.want, test.why)
		}
	}
}

func FuzzNamesInGo(f *testing.F) {
	for _, name := range []string{"PAYMENT_RECEIVED", "payment.success", "3ds", "URLPath", "İ", "a\x80b"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := GoName(name)
		if !token.IsIdentifier("X" + got) {
			t.Errorf("goName(%q) = %q cannot be a part of a Go name", name, got)
		}
		if again := GoName("_" + name + "."); again != got {
			t.Errorf("separators at the ends of %q change its name from %q to %q", name, got, again)
		}
	})
}
