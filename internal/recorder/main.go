// Recorder is for docs/sandbox.md. It stands between a tunnel at :8081 and a program at :8080: it saves each body in the
// order of arrival, prints a line, and passes the delivery on. If a file named answer exists, it answers with the status
// in it, and passes nothing on.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

func main() {
	to, err := url.Parse("http://localhost:8080")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.MkdirAll("saved", 0o700); err != nil {
		log.Fatal(err)
	}
	var n atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(to)
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "cut off", http.StatusServiceUnavailable)
			return
		}
		var e struct{ ID, Event, DateCreated string }
		_ = json.Unmarshal(body, &e)
		name := fmt.Sprintf("saved/%04d.json", n.Add(1))
		if err := os.WriteFile(name, body, 0o600); err != nil {
			log.Print(err)
		}
		fmt.Println(name, time.Now().UTC().Format(time.TimeOnly), e.DateCreated, e.Event, e.ID, fmt.Sprintf("%x", sha256.Sum256(body))[:8], r.UserAgent())
		if text, err := os.ReadFile("answer"); err == nil {
			if status, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				w.WriteHeader(status)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
	log.Fatal(http.ListenAndServe("localhost:8081", nil))
}
