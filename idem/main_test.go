package idem_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // unless -parallel says something else: tests mostly wait
	status := m.Run()
	if err := closeExamples(); err != nil {
		fmt.Println(err)
		status = 1
	}
	os.Exit(status)
}

// exampleURL leads to the schema of all examples, which run one after the other.
var exampleURL = sync.OnceValues(func() (string, error) {
	server, err := idemtest.Start(context.Background())
	if err != nil {
		return "", err
	}
	closeExamples = server.Close
	return server.URL(), nil
})

var closeExamples = func() error { return nil }
