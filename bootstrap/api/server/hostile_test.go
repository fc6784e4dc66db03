package server_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// TestThousandTraces: of a thousand clients of traces over TCP eight are served, the others get 503
// or lose their connection; probes, and traces on the control socket, are answered meanwhile.
func TestThousandTraces(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	var (
		asked, done         sync.WaitGroup
		served, refused, no atomic.Int64
		leave               = make(chan struct{})
	)
	for range 1000 {
		asked.Add(1)
		done.Go(func() {
			response, err := tcp(a).Get("http://localhost/api/v1/trace")
			switch {
			case err != nil:
				no.Add(1)
			case response.StatusCode == http.StatusOK:
				served.Add(1)
			case response.StatusCode == http.StatusServiceUnavailable:
				refused.Add(1)
			default:
				t.Errorf("%s", response.Status)
			}
			asked.Done()
			<-leave
			if err == nil {
				_ = response.Body.Close()
			}
		})
	}
	asked.Wait()
	if served.Load() > 8 || served.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d served, %d refused, %d closed", served.Load(), refused.Load(), no.Load())
	}
	if code, _, _ := call(t, tcp(a), http.MethodGet, "/livez", ""); code != http.StatusOK {
		t.Errorf("livez: %d", code)
	}
	if code, _, _ := call(t, control(a), http.MethodGet, "/api/v1/trace?follow=false", ""); code != http.StatusOK {
		t.Errorf("a trace on the control socket: %d", code)
	}
	close(leave)
	done.Wait()
}

// TestSlowReadersAreCutOff: clients that do not read lose their traces, and others get the room.
func TestSlowReadersAreCutOff(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), func(c *server.Config) { c.Timeout = 2 * time.Second })
	room := func() bool {
		t.Helper()
		code, _, _ := call(t, tcp(a), http.MethodGet, "/api/v1/trace?follow=false&limit=1", "")
		return code == http.StatusOK
	}
	for room() {
		// as often as it takes, because a busy server drops a request that it has not read
		// in time
		conn, err := net.Dial("tcp", a.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "GET /api/v1/trace HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("x", 64<<10)
	for n := 0; !room(); n++ { // until one has lost its room
		for i := range 20 {
			a.Record(api.Event{Kind: "render", Text: fmt.Sprint(n, i, long)})
		}
		time.Sleep(100 * time.Millisecond)
	}
}
