package health_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"mime"
	"net"
	"net/smtp"
	"time"

	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/check"
)

// An e-mail to the person on call. Give the Notifier to paghooks.Run, or to idem.Serve with Health and DB.
func ExampleNotifier_mail() {
	server := listenForMail()
	notifier := &health.Notifier{Notify: mailer{
		server: server, user: "shop", password: "secret", from: "shop@shop.example", to: "oncall@shop.example",
	}.send}

	// Send one at each deployment: only so does a wrong password show before it is needed.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := notifier.Notify(ctx, check.Result{
		Source: "asaas", Name: "parked", Says: "1 event is parked, until a person acts",
		Remedy: "put right what the error says, and deploy it; then requeue them", Command: "idem requeue -source asaas -state parked",
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output:
	// AUTH PLAIN
	// MAIL FROM:<shop@shop.example> BODY=8BITMIME
	// RCPT TO:<oncall@shop.example>
	// From: shop@shop.example
	// To: oncall@shop.example
	// Subject: asaas: parked fails
	// Content-Type: text/plain; charset=utf-8
	//
	// 1 event is parked, until a person acts: put right what the error says, and deploy it; then requeue them: idem requeue -source asaas -state parked
}

// mailer sends e-mails.
type mailer struct{ server, user, password, from, to string }

// send is a Notify.
func (m mailer) send(ctx context.Context, r check.Result) error {
	subject := r.Source + ": " + r.Name + " fails"
	if r.Healthy {
		subject = r.Source + ": " + r.Name + " is well again"
	}
	message := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: %s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n%s\r\n",
		m.from, m.to, mime.QEncoding.Encode("utf-8", subject), r)

	// Not smtp.SendMail, which waits for a server that does not answer without end.
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.server)
	if err != nil {
		return err
	}
	defer conn.Close()
	late, _ := ctx.Deadline()
	if err := conn.SetDeadline(late); err != nil {
		return err
	}
	host, _, _ := net.SplitHostPort(m.server)
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	if ok, _ := c.Extension("STARTTLS"); ok {
		if err := c.StartTLS(&tls.Config{ServerName: host}); err != nil {
			return err
		}
	}
	// PlainAuth refuses to show the password without TLS, but to this machine.
	if err := c.Auth(smtp.PlainAuth("", m.user, m.password, host)); err != nil {
		return err
	}
	if err := c.Mail(m.from); err != nil {
		return err
	}
	if err := c.Rcpt(m.to); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(message)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the server has accepted it
	return nil
}
