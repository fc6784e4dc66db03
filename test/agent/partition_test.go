package agent_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// wire is the connection of one agent to a server, as a TCP proxy on loopback that a story can cut.
type wire struct {
	net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// newWire makes a wire to "host:port" that lives as long as the test.
func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listener, to: to, conns: map[net.Conn]bool{}}
	t.Cleanup(func() {
		_ = listener.Close()
		w.sever(true)
	})
	go w.serve()
	return w
}

func (w *wire) serve() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			if w.keep(pair[0]) {
				go func() {
					_, _ = io.Copy(pair[1], pair[0])
					_, _ = near.Close(), far.Close()
				}()
			}
		}
	}
}

// keep remembers a connection, or closes it while the wire is cut.
func (w *wire) keep(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		_ = c.Close()
		return false
	}
	w.conns[c] = true
	return true
}

// sever cuts the wire, or mends it.
func (w *wire) sever(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for c := range w.conns {
		_ = c.Close()
	}
	clear(w.conns)
}
