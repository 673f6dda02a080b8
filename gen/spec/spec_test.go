package spec

import (
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/gen/internal/golden"
)

// The golden files of ../testdata/good/shared have the code that follows.
func TestAnAmountIsPlainOnlyWhereEveryEventIsParkedWithoutIt(t *testing.T) {
	t.Parallel()
	s, err := Load("../testdata/good/shared/spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		schema, property string
		plain            bool
		why              string
	}{
		{"Charge", "value", true, "both events need it"},
		{"EarlierCharge", "value", false, "it is a schema of its own, and no event needs it"},
		{"Pix", "value", false, "one of two events needs it"},
		{"Refund", "value", false, "a list has it as well"},
		{"Leg", "value", false, "the leg inside of a leg has it as well"},
		{"Side", "value", true, "it is needed in both places"},
		{"Side", "fee", false, "it is needed in one of two places"},
		{"TransactionEvent", "total", true, "the one event that has it needs it"},
		{"Envelope", "gross", true, "both events need it"},
		{"Envelope", "net", false, "one of two events needs it"},
	} {
		if got := !s.MayLack(s.Schemas()[tt.schema].Value, tt.property); got != tt.plain {
			t.Errorf("%s.%s is plain: %t, want %t, as %s", tt.schema, tt.property, got, tt.plain, tt.why)
		}
	}
}

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

// How a value is read follows from its schema: optional, a text, or a number too.
func TestPlacesSayHowAValueIsRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(path, []byte(`openapi: 3.1.0
info: {title: A shop, version: "1"}
x-provider: {event: {type: kind}, verify: [{scheme: none}]}
webhooks:
  PAID:
    post: {requestBody: {content: {application/json: {schema: {$ref: "#/components/schemas/OrderEvent"}}}}}
components:
  schemas:
    OrderEvent:
      type: object
      required: [number, order]
      properties:
        kind: {type: string}
        number: {type: integer}
        order:
          type: object
          required: [id]
          properties: {id: {type: string}, code: {type: string}, bill: {type: [string, "null"], format: text}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	got := s.Places(Paths{"number", "order.id", "order.code", "order.bill", "nowhere.id"})
	want := []string{"number#", "order.id", "order.code?", "order.bill?#", "nowhere.id#"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each file of testdata/bad breaks the rule that its title tells; the text
// beside it is the message.
func TestBadSpecsAreRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	specs, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(specs) == 0 {
		t.Fatalf("no bad specs: %v", err)
	}
	for _, path := range specs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			s, err := Load(path)
			if err == nil {
				err = s.Lint()
			}
			if err == nil {
				t.Fatal("it was accepted")
			}
			golden.Compare(t, strings.TrimSuffix(path, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

func TestTheLineOfAnOverlayLetsGoWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	const path = "testdata/bad/idle-extensions.yaml"
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var overlay strings.Builder
	overlay.WriteString("overlay: 1.0.0\ninfo: {title: What is let go, version: '1'}\nactions:\n")
	for line := range strings.Lines(s.Lint().Error()) {
		if _, action, ok := strings.Cut(line, "in an overlay: "); ok {
			overlay.WriteString("  - " + action)
		}
	}
	file := filepath.Join(t.TempDir(), "overlay.yaml")
	if err := os.WriteFile(file, []byte(overlay.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err = Load(path, file)
	if err == nil {
		err = s.Lint()
	}
	if err != nil {
		t.Errorf("%v\n%s", err, &overlay)
	}
}

// Each file of testdata/ordinary is an ordinary OpenAPI document; the text beside it
// is the advice that it gets.
func TestOrdinarySpecsAreTakenWithAdvice(t *testing.T) {
	t.Parallel()
	specs, err := filepath.Glob("testdata/ordinary/*.yaml")
	if err != nil || len(specs) == 0 {
		t.Fatalf("no ordinary specs: %v", err)
	}
	for _, path := range specs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			s, err := Load(path)
			if err == nil {
				err = s.Lint()
			}
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, strings.TrimSuffix(path, ".yaml")+".txt", strings.Join(s.Warnings(), "\n")+"\n")
		})
	}
}
