package server_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
)

// TestConnectionsAreLimited: idle connections over TCP do not add up, a probe is answered, and a
// trace stays.
func TestConnectionsAreLimited(t *testing.T) {
	refused := make(chan server.Refusal, 100)
	a := apitest.Start(t, apitest.New(1), func(c *server.Config) {
		c.MostConnections, c.Refused = 5, func(r server.Refusal) { refused <- r }
	})
	a.Record(api.Event{Kind: "render"})
	next, end := follow(t, tcp(a), "")
	defer end()
	next()
	var idle []net.Conn
	for range 20 {
		conn, err := net.Dial("tcp", a.Address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		idle = append(idle, conn)
	}
	if code, _, _ := call(t, tcp(a), http.MethodGet, "/livez", ""); code != http.StatusOK {
		t.Errorf("livez: %d", code)
	}
	if code, _, _ := call(t, control(a), http.MethodGet, "/livez", ""); code != http.StatusOK {
		t.Errorf("livez on the control socket: %d", code)
	}
	open := 0
	for i, conn := range idle {
		patience := 20 * time.Second // for the longest idle ones, which are closed
		if i >= len(idle)-4 {
			patience = 300 * time.Millisecond
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := bufio.NewReader(conn).ReadByte(); errors.Is(err, os.ErrDeadlineExceeded) {
			open++
		}
	}
	if open != 3 && open != 4 { // besides the trace, and the probe unless it has gone already
		t.Errorf("%d idle connections are open", open)
	}
	if len(refused) == 0 {
		t.Error("nothing was refused")
	} else if r := <-refused; r.Listener != "http" || r.Why != server.RefusedConnections {
		t.Errorf("%+v", r)
	}
	a.Record(api.Event{Kind: "render"})
	if e, ok := next(); !ok || e.Seq != 2 {
		t.Errorf("the trace: %+v, %v", e, ok)
	}
}
