package asaas_test

import (
	"os"
	"path/filepath"
	"testing"
)

// testdata returns a body of testdata. They are made up after the facts known
// about what Asaas delivers; nobody's data is in them.
func testdata(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}
