package agent_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// wire is the connection of one agent to a server, as a TCP proxy on loopback that a story can cut
// or stop.
type wire struct {
	net.Listener
	to string

	mu     sync.Mutex
	cut    bool
	thawed chan struct{} // closed while bytes pass
	conns  map[net.Conn]bool
}

// newWire makes a wire to "host:port" that lives as long as the test.
func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: listener, to: to, conns: map[net.Conn]bool{}, thawed: make(chan struct{})}
	close(w.thawed)
	t.Cleanup(func() {
		_ = listener.Close()
		w.stop(false)
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
					w.carry(pair[1], pair[0])
					_, _ = near.Close(), far.Close()
				}()
			}
		}
	}
}

// carry passes bytes on until a side ends.
func (w *wire) carry(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		thawed := w.thawed
		w.mu.Unlock()
		<-thawed
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// stop has the wire pass no byte on, as a proxy does whose process is stopped: its kernel still
// accepts connections and bytes. Or it has the wire go on.
func (w *wire) stop(stop bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.thawed:
		if stop {
			w.thawed = make(chan struct{})
		}
	default:
		if !stop {
			close(w.thawed)
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

// sever cuts the wire, so that it accepts connections and closes them, or mends it.
func (w *wire) sever(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for c := range w.conns {
		_ = c.Close()
	}
	clear(w.conns)
}
