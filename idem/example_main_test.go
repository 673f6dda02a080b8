package idem_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestMain(m *testing.M) {
	status := m.Run()
	if err := closeExamples(); err != nil {
		fmt.Println(err)
		status = 1
	}
	os.Exit(status)
}

var closeExamples = func() error { return nil }

// exampleURL leads to the schema of all examples, which run one after the other.
var exampleURL = sync.OnceValues(func() (string, error) {
	server, err := idemtest.Start(context.Background())
	if err != nil {
		return "", err
	}
	closeExamples = server.Close
	return server.URL(), nil
})
