package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const userAgent = "paghooks-gen (+https://github.com/paghooks/paghooks)"

// fetcher reads a document from a file or from the web.
type fetcher struct {
	timeout time.Duration
	limit   int64 // bytes; Asaas's document has 1.1 million
}

func newFetcher() fetcher { return fetcher{timeout: time.Minute, limit: 32 << 20} }

func (f fetcher) read(ctx context.Context, source string) ([]byte, error) {
	if !strings.Contains(source, "://") {
		return readFile(source, f.limit)
	}
	u, err := url.Parse(source)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("gen: %q is no address of the web: write http:// or https://, or the path of a file", source)
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	return f.get(ctx, u.String())
}

func (f fetcher) get(ctx context.Context, address string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("gen: %s cannot be asked for, correct it: %w", address, err)
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("gen: %s does not answer, try again, or save it with a browser and give the file: %w", address, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("gen: %s answers %s: look whether the document has moved, or save it with a browser and give the file", address, answer.Status)
	}
	return readAll(answer.Body, address, f.limit)
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gen: cannot read the document, check its path: %w", err)
	}
	defer f.Close()
	return readAll(f, path, limit)
}

// readAll reads up to the limit, so that no answer fills the memory.
func readAll(r io.Reader, source string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("gen: %s did not arrive whole, try again: %w", source, err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("gen: %s is larger than %d bytes: is it the OpenAPI document?", source, limit)
	}
	return data, nil
}
