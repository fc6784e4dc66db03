package healthcheck

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// crowd opens connections that ask once and stay, and returns how many of them the server has left
// open.
func crowd(t *testing.T, address string, count int) (open int) {
	t.Helper()
	var all []func() error
	for range count {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(time.Minute))
		in := bufio.NewReader(conn)
		ask := func() error {
			if _, err := conn.Write([]byte("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
				return err
			}
			response, err := http.ReadResponse(in, nil)
			if err != nil {
				return err
			}
			_, err = io.Copy(io.Discard, response.Body)
			return err
		}
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		all = append(all, ask)
	}
	for _, ask := range all {
		switch err := ask(); {
		case err == nil:
			open++
		case errors.Is(err, os.ErrDeadlineExceeded):
			t.Fatal(err)
		}
	}
	return open
}

// TestConnectionsOfTheNodeAreLimited: the connections of idle clients of port 10256 are limited,
// and no such client keeps a load balancer out.
func TestConnectionsOfTheNodeAreLimited(t *testing.T) {
	var limited atomic.Int64
	s, _ := runNode(t, "127.0.0.1:0", Config{MostConnections: 5, OnLimit: func() { limited.Add(1) }})
	address := listens(t, s)
	if open := crowd(t, address, 30); open != 5 {
		t.Errorf("%d idle connections are open, want 5", open)
	}
	if got, err := request(http.MethodGet, "http://"+address+"/healthz"); err != nil || got.status != http.StatusOK {
		t.Errorf("%+v, %v", got, err)
	}
	if got := limited.Load(); got < 25 {
		t.Errorf("OnLimit was called %d times", got)
	}
}

// TestConnectionsOfAServiceAreLimited: each address has a limit of its own.
func TestConnectionsOfAServiceAreLimited(t *testing.T) {
	var limited atomic.Int64
	w := start(t, Config{MostConnections: 3, OnLimit: func() { limited.Add(1) }})
	w.set(check("shop/web", 1, 1, here), check("shop/api", 1, 1, there))
	if open := crowd(t, w.host.at(here), 20); open != 3 {
		t.Errorf("%d idle connections are open, want 3", open)
	}
	if got := limited.Load(); got != 17 {
		t.Errorf("OnLimit was called %d times, want 17", got)
	}
	if open := crowd(t, w.host.at(there), 3); open != 3 {
		t.Errorf("the other address: %d connections are open, want 3", open)
	}
	for _, address := range []string{here, there} {
		if got := w.ask(http.MethodGet, address, "/"); got.status != http.StatusOK {
			t.Errorf("%s: %+v", address, got)
		}
	}
}
