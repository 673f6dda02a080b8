package main

import (
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// balancer hands each delivery to the next receiver. One that does not answer is a
// 502: the provider delivers again.
type balancer struct {
	url       string
	server    *http.Server
	receivers atomic.Pointer[[]string]
	next      atomic.Uint64
}

func startBalancer() (*balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{url: "http://" + listener.Addr().String() + path}
	b.to([]string{""})
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			all := *b.receivers.Load()
			r.SetURL(&url.URL{Scheme: "http", Host: all[b.next.Add(1)%uint64(len(all))]})
		},
		Transport:    &http.Transport{MaxIdleConnsPerHost: 64, ResponseHeaderTimeout: 10 * time.Second},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	b.server = &http.Server{Handler: proxy, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := b.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Print("rehearsal: the load balancer: ", err)
		}
	}()
	return b, nil
}

func (b *balancer) to(receivers []string) { b.receivers.Store(&receivers) }

func (b *balancer) close() { _ = b.server.Close() }
