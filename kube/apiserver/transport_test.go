package apiserver_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// TestWatchWithoutAnswer: client-go returns an empty watch and no error for each of these, most of
// them after 10 more requests, one a second.
func TestWatchWithoutAnswer(t *testing.T) {
	for name, failure := range map[string]func(net.Conn){
		"end":   func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) },
		"reset": func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) },
		"break": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "HTTP/1.1 200")
		},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			var dialed atomic.Int64
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					dialed.Add(1)
					failure(c)
					_ = c.Close()
				}
			}()
			client, err := apiserver.New(&rest.Config{Host: "http://" + listener.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			w, err := client.Nodes.WatchWithContext(t.Context(), metav1.ListOptions{})
			if err == nil || dialed.Load() != 1 {
				t.Errorf("watch %v, %v after %d connections", w, err, dialed.Load())
			}
			if list, err := client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil || dialed.Load() != 2 {
				t.Errorf("list %v, %v after %d connections", list, err, dialed.Load())
			}
		})
	}
	client, err := apiserver.New(&rest.Config{Host: "https://192.0.2.1", Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: context.DeadlineExceeded} // a timeout
	}})
	if err != nil {
		t.Fatal(err)
	}
	if w, err := client.Nodes.WatchWithContext(t.Context(), metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("watch %v, %v", w, err)
	}
}

// TestBrokenWatch: a watch says whether the API server ended it, or which error broke it.
func TestBrokenWatch(t *testing.T) {
	end := make(chan func(http.ResponseWriter))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		(<-end)(w)
	}))
	defer server.Close()
	client, err := apiserver.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		end    func(http.ResponseWriter)
		broken error
	}{
		"ended": {func(http.ResponseWriter) {}, nil},
		"broken": {func(w http.ResponseWriter) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = c.Close()
			}
		}, io.ErrUnexpectedEOF},
	} {
		w, err := client.Nodes.WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		end <- tt.end
		if event, more := <-w.ResultChan(); more {
			t.Errorf("%s: event %v", name, event)
		}
		if broken := w.(*apiserver.Watch).Broken(); !errors.Is(broken, tt.broken) {
			t.Errorf("%s: broken by %v", name, broken)
		}
	}
	w, err := client.Nodes.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.Stop() // a watch that the reader stops has no error
	<-w.ResultChan()
	if broken := w.(*apiserver.Watch).Broken(); broken != nil {
		t.Errorf("broken by %v", broken)
	}
	end <- func(http.ResponseWriter) {}
}

// member is one of several API servers.
type member struct {
	*httptest.Server
	asked atomic.Int64
	code  atomic.Int64 // of its answers
}

func newMember(t *testing.T, tls bool) *member {
	m := &member{}
	m.code.Store(http.StatusOK)
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(m.code.Load()))
		switch {
		case m.code.Load() != http.StatusOK || r.Method != http.MethodGet:
		case r.URL.Query().Has("watch"):
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		default:
			_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[]}`)
		}
	}))
	if tls {
		m.EnableHTTP2 = true
		m.StartTLS()
	} else {
		m.Start()
	}
	t.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// TestSeveralAddresses: a client stays with an address that works and takes the next one when it
// fails. Requests that only read succeed all the same.
func TestSeveralAddresses(t *testing.T) {
	a, b, c := newMember(t, true), newMember(t, true), newMember(t, true)
	rc := &rest.Config{Host: a.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Certificate().Raw}),
	}}
	// the last address has no scheme, as --kube-api-server allows
	client, err := apiserver.New(rc, b.URL, strings.TrimPrefix(c.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	asked := func() [3]int64 { return [3]int64{a.asked.Load(), b.asked.Load(), c.asked.Load()} }
	list := func(what string, want [3]int64) {
		t.Helper()
		_, err := client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{})
		if got := asked(); err != nil || got != want {
			t.Errorf("%s: %v, requests %v, want %v", what, err, got, want)
		}
	}
	list("the first", [3]int64{1, 0, 0})
	list("it works", [3]int64{2, 0, 0})
	w, err := client.Nodes.WatchWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	a.CloseClientConnections()
	if event, more := <-w.ResultChan(); more && event.Type != watch.Error {
		t.Errorf("event %v", event)
	}
	list("a watch of it broke off", [3]int64{3, 1, 0})
	list("the next works, and the first again", [3]int64{3, 2, 0})
	b.CloseClientConnections()
	b.Listener.Close()
	list("the next does not listen", [3]int64{3, 2, 1})
	c.code.Store(http.StatusBadGateway)
	if _, err := client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("502 is an answer")
	}
	list("behind the third there is none", [3]int64{4, 2, 2})
	a.CloseClientConnections()
	a.Listener.Close()
	c.CloseClientConnections()
	c.Listener.Close()
	_, err = client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{})
	for _, m := range []*member{a, b, c} {
		if host := m.Listener.Addr().String(); err == nil || !strings.Contains(err.Error(), " "+host+": ") {
			t.Errorf("without any: %v, want %s", err, host)
		}
	}
}

// TestAddressesWithPaths: the scheme, the host and the path prefix change between two addresses,
// and the path of the API does not.
func TestAddressesWithPaths(t *testing.T) {
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.Host+r.URL.Path)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[]}`)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for first, other := range map[string]string{"": "/clusters/c", "/x/y": "", "/x": "/clusters/c/"} {
		client, err := apiserver.New(&rest.Config{Host: "http://127.0.0.1:1" + first, Timeout: time.Minute}, server.URL+other)
		if err != nil {
			t.Fatal(err)
		}
		paths = nil
		_, err = client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{})
		if want := host + strings.TrimSuffix(other, "/") + "/api/v1/nodes"; err != nil || len(paths) != 1 || paths[0] != want {
			t.Errorf("%q and %q: %v, %q, want %q", first, other, err, paths, want)
		}
	}
}

// TestRedirectIsNotFollowed: the token of the agent stays with the API server.
func TestRedirectIsNotFollowed(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the thief got %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	server := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	client, err := apiserver.New(&rest.Config{Host: server.URL, BearerToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Nodes.ListWithContext(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a redirect is a list")
	}
	if w, err := client.Nodes.WatchWithContext(t.Context(), metav1.ListOptions{}); err == nil {
		t.Errorf("a redirect is a watch: %v", w)
	}
	if v, err := client.Version(t.Context()); err == nil {
		t.Errorf("a redirect is the version %v", v)
	}
}
