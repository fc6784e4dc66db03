package healthcheck

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// bounded runs a server with a limit until the test ends.
func bounded(t *testing.T, most int, handler http.HandlerFunc) (address string, closed *atomic.Int64) {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed = &atomic.Int64{}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	l := Bound(server, inner, most, func() { closed.Add(1) })
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return inner.Addr().String(), closed
}

// guest is a connection that stays open.
type guest struct {
	*testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, address string) *guest {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return &guest{t, conn, bufio.NewReader(conn)}
}

// ask sends a request and returns the answer; "" = the connection is closed.
func (c *guest) ask() string {
	c.Helper()
	if _, err := io.WriteString(c.conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return ""
	}
	response, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// closed waits until the server closes the connection.
func (c *guest) closed() bool {
	_, err := c.in.ReadByte()
	return err != nil && !strings.Contains(err.Error(), "timeout")
}

// TestIdleConnectionsMakeRoom: however many connections are idle, a new client is answered, and the
// longest idle ones are closed.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	address, closed := bounded(t, 3, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	silent := dial(t, address) // without any request
	var idle []*guest
	for range 8 {
		one := dial(t, address)
		if got := one.ask(); got != "ok" {
			t.Fatalf("answer %q", got)
		}
		idle = append(idle, one)
	}
	if !silent.closed() {
		t.Error("the silent connection is open")
	}
	for i, one := range idle[:5] {
		if !one.closed() {
			t.Errorf("idle connection %d is open", i)
		}
	}
	for i, one := range idle[5:] {
		if got := one.ask(); got != "ok" {
			t.Errorf("connection %d of the latest three: %q", i, got)
		}
	}
	if got := closed.Load(); got != 6 {
		t.Errorf("%d connections were closed, want 6", got)
	}
}

// TestBusyConnectionsStay: a connection whose request is being answered is not closed. While all
// are busy, new connections are closed.
func TestBusyConnectionsStay(t *testing.T) {
	entered, block := make(chan struct{}), make(chan struct{})
	address, closed := bounded(t, 2, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-block
		_, _ = io.WriteString(w, "ok")
	})
	answers := make(chan string, 2)
	for range 2 {
		one := dial(t, address)
		go func() { answers <- one.ask() }()
		<-entered
	}
	for range 3 {
		if !dial(t, address).closed() {
			t.Error("a third connection is open")
		}
	}
	close(block)
	for range 2 {
		if got := <-answers; got != "ok" {
			t.Errorf("answer %q", got)
		}
	}
	if got := closed.Load(); got != 3 {
		t.Errorf("%d connections were closed, want 3", got)
	}
}

// TestClosedConnectionsDoNotCount: connections that clients close leave room.
func TestClosedConnectionsDoNotCount(t *testing.T) {
	address, closed := bounded(t, 2, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "ok")
	})
	for range 20 {
		one := dial(t, address)
		if got := one.ask(); got != "ok" || !one.closed() {
			t.Fatalf("answer %q", got)
		}
	}
	if got := closed.Load(); got != 0 {
		t.Errorf("%d connections were closed early", got)
	}
}
