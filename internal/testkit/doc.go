// Package testkit holds what tests of several packages share.
//
//	source shop            // an application under test, and the provider that delivers to it
//	inbox tables           // its workers, and what the database holds
//	operate health         // what people do to its events, and what its health says
//	till broker            // handlers whose order shows, and a broker in memory
//	size random            // the two sizes of a test, and its random numbers
//	wait log               // waits with an end, and logs without warnings
package testkit

import (
	"flag"
	"os"
	"testing"
)

// Main is the TestMain of packages whose tests mostly wait for Postgres: 8 run at once, unless -parallel says
// something else.
func Main(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	os.Exit(m.Run())
}
