package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var _ Source = (*Consul)(nil)

// run starts a source against the handler. The handler gets the queries that do not block; blocking
// queries end with the client.
func run(t *testing.T, handler http.HandlerFunc) <-chan Snapshot {
	t.Helper()
	return runOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("index") != "" {
			<-r.Context().Done()
			return
		}
		handler(w, r)
	})
}

// runOn is run with a handler of all queries.
func runOn(t *testing.T, handler http.HandlerFunc) <-chan Snapshot {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Consul-Index", "7")
		handler(w, r)
	}))
	o, err := ParseConsul(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.Limits = DefaultLimits()
	o.Limits.List = 1 << 20
	s, err := NewConsul(o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	out, done := make(chan Snapshot, 1000), make(chan error, 1)
	go func() { done <- s.Run(ctx, func(s Snapshot) { out <- s }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return out
}

// until returns the first snapshot for which ok is true.
func until(t *testing.T, in <-chan Snapshot, ok func(Snapshot) bool) Snapshot {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case s := <-in:
			if ok(s) {
				return s
			}
		case <-deadline:
			t.Fatal("no such snapshot")
		}
	}
}

func TestA6FilteredAnswerIsIncomplete(t *testing.T) {
	out := run(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Consul-Results-Filtered-By-ACLs", "true")
		fmt.Fprint(w, `{}`)
	})
	until(t, out, func(s Snapshot) bool {
		if s.Complete || len(s.Problems) == 0 {
			t.Fatalf("snapshot %+v", s)
		}
		return strings.Contains(s.Problems[0].Message, "get /v1/catalog/services: the answer is filtered by ACL")
	})
}

// TestAnswers: an unusable answer is a problem, and makes the snapshot incomplete.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		why, header, value, body string
		status                   int
	}{
		{"429 Too Many Requests", "", "", `{}`, http.StatusTooManyRequests},
		{"307 Temporary Redirect", "Location", "/elsewhere", `{}`, http.StatusTemporaryRedirect},
		{"decode the services: ", "", "", `<html>`, http.StatusOK},
		{"decode the services: ", "", "", `[1]`, http.StatusOK},
		{"decode the services: the answer is null", "", "", ` null`, http.StatusOK},
		{"read the index", "X-Consul-Index", "", `{}`, http.StatusOK},
		{"no leader is known", "X-Consul-KnownLeader", "false", `{}`, http.StatusOK},
		{"a token is needed", "X-Consul-Default-ACL-Policy", "deny", `{}`, http.StatusOK},
		{"unexpected EOF", "Content-Length", "100", `{"web":`, http.StatusOK},
		{"the answer is too large", "", "", `{"web":[]}` + strings.Repeat(" ", 1<<20), http.StatusOK},
	} {
		out := run(t, func(w http.ResponseWriter, _ *http.Request) {
			if c.header != "" {
				w.Header().Set(c.header, c.value)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		s := until(t, out, func(s Snapshot) bool {
			return slices.ContainsFunc(s.Problems, func(p Problem) bool { return strings.Contains(p.Message, c.why) })
		})
		if s.Complete {
			t.Errorf("%s: snapshot %+v", c.why, s)
		}
	}
}

func TestA8OneFailedNameIsUnknown(t *testing.T) {
	out := run(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/catalog/services":
			fmt.Fprint(w, `{"consul":[],"bad":[],"web":[]}`)
		case "/v1/health/service/web":
			fmt.Fprint(w, `[{"Node":{"Address":"192.0.2.1"},"Service":{"ID":"web-1","Port":80},"Checks":[{"CheckID":"c","Status":"critical"}]}]`)
		default:
			http.Error(w, "no", http.StatusInternalServerError)
		}
	})
	s := until(t, out, func(s Snapshot) bool {
		return len(s.Services) == 2 && !s.Services[1].Unknown && len(s.Problems) == 1
	})
	web := s.Services[1].Instances[0]
	if !s.Complete || !s.Services[0].Unknown || s.Problems[0].Service != "bad" {
		t.Errorf("snapshot %+v", s)
	}
	if web.NodeAddress != "192.0.2.1" || web.Ports[""] != 80 || web.State != NotReady {
		t.Errorf("instance %+v", web)
	}
}

// TestManyServicesAreSwept: a blocking query waits for each service up to a number of services;
// above it, each is asked again and again.
func TestManyServicesAreSwept(t *testing.T) {
	for services, blocks := range map[int]bool{followed: true, followed + 1: false} {
		names := make([]string, services)
		for i := range names {
			names[i] = fmt.Sprintf(`"s%d":[]`, i)
		}
		again := make(chan bool, 1000) // queries of the first service after the first one: do they block?
		var first atomic.Bool
		out := runOn(t, func(w http.ResponseWriter, r *http.Request) {
			blocking := r.URL.Query().Get("index") != ""
			switch {
			case r.URL.Path == "/v1/health/service/s0" && !first.Swap(true):
			case r.URL.Path == "/v1/health/service/s0":
				again <- blocking
			}
			switch {
			case blocking:
				<-r.Context().Done()
			case r.URL.Path == "/v1/catalog/services":
				fmt.Fprint(w, "{"+strings.Join(names, ",")+"}")
			default:
				fmt.Fprint(w, `[{"Service":{"ID":"x","Address":"192.0.2.1"}}]`)
			}
		})
		until(t, out, func(s Snapshot) bool {
			return len(s.Services) == services && !slices.ContainsFunc(s.Services, func(s Service) bool { return s.Unknown })
		})
		if got := <-again; got != blocks {
			t.Errorf("%d services: the next query blocks: %t", services, got)
		}
	}
}

func TestA19Index(t *testing.T) {
	for _, c := range []struct{ last, next, want uint64 }{{0, 0, 1}, {0, 5, 5}, {5, 5, 5}, {5, 4, 0}, {5, 0, 0}} {
		if got := nextIndex(c.last, c.next); got != c.want {
			t.Errorf("after %d and %d: %d, want %d", c.last, c.next, got, c.want)
		}
	}
}

func TestNameStaysOneSegmentOfThePath(t *testing.T) {
	out := run(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.EscapedPath() {
		case "/v1/catalog/services":
			fmt.Fprint(w, `{"a/../b c":[]}`)
		case "/v1/health/service/a%2F..%2Fb%20c":
			fmt.Fprint(w, `[{"Node":{"Address":"192.0.2.1"},"Service":{"ID":"x"}}]`)
		default:
			http.Error(w, r.URL.EscapedPath(), http.StatusInternalServerError)
		}
	})
	until(t, out, func(s Snapshot) bool { return len(s.Services) == 1 && !s.Services[0].Unknown })
}

func TestParseConsul(t *testing.T) {
	for _, text := range []string{
		"", "ftp://a:1", "http://a", "http://a:1/x", "http://a:1?dcs=x", "http://a:1?dc=", "http://a:1?tag=", "http://a:1?dc=x&dc=y", "http://u:p@a:1", "http://a:1#f",
	} {
		if _, err := ParseConsul(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	o, err := ParseConsul("https://a:1?dc=x&tag=edge&exclude-tag=")
	if err != nil || o.URL.String() != "https://a:1/" || o.Datacenter != "x" || o.Tag != "edge" || o.ExcludedTag != "" {
		t.Errorf("%+v %v", o, err)
	}
	if o, err = ParseConsul("http://a:1"); err != nil || o.ExcludedTag != FromKubernetes {
		t.Errorf("%+v %v", o, err)
	}
}

func FuzzA29Consul(f *testing.F) {
	f.Add([]byte(`{"a":[]}`))
	f.Add([]byte(`{}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`[{"Service":{"Port":1}}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		o := ConsulOptions{Limits: DefaultLimits()}
		in := func() *answer { return answerOf(t, bytes.NewReader(body), 8<<20) }
		names, err := decodeNames(in(), 100)
		if !slices.IsSorted(names) || slices.ContainsFunc(names, func(n string) bool { return n == "" || n == "." || n == ".." }) {
			t.Errorf("names %q", names)
		}
		if err == nil && bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
			t.Error("null is taken")
		}
		s, err := decodeInstances(in(), &o)
		if err == nil && s.foreign {
			t.Errorf("service %+v", s)
		}
		if all := json.Unmarshal(body, new([]entry)); err == nil && all != nil {
			t.Errorf("taken although %v", all)
		}
	})
}
