package link

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/codec"

	"github.com/troupe-vpp/troupe/messages"
)

// socketServer serves a fakeVPP on a real unix socket, so that the transport and the kernel's
// buffers are part of the test. Like VPP it reads nothing while it hangs.
type socketServer struct {
	vpp      *fakeVPP
	listener *net.UnixListener
	group    sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
	// mangle, which may be nil, changes the header of a frame before it is sent.
	mangle atomic.Pointer[func(header []byte, handshake bool)]
}

// setLength puts a length into the headers of frames: of the handshake, or after it.
func (s *socketServer) setLength(length uint32, handshake bool) {
	mangle := func(header []byte, now bool) {
		if now == handshake {
			binary.BigEndian.PutUint32(header[8:], length)
		}
	}
	s.mangle.Store(&mangle)
}

// listen serves vpp on path until the test ends or close is called.
func listen(t *testing.T, vpp *fakeVPP, path string) *socketServer {
	t.Helper()
	_ = os.Remove(path)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	listener.SetUnlinkOnClose(false)
	s := &socketServer{vpp: vpp, listener: listener}
	s.group.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

// close ends the server as a crash would: the socket file stays.
func (s *socketServer) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.group.Wait()
}

// accept takes connections.
func (s *socketServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.mu.Unlock()
		s.group.Go(func() { s.serve(conn) })
	}
}

// serve answers the frames of one connection.
func (s *socketServer) serve(conn net.Conn) {
	defer conn.Close()
	c := s.vpp.adapter().(*fakeConn)
	r := bufio.NewReader(conn)
	for {
		s.vpp.mu.Lock()
		gate := s.vpp.hung
		s.vpp.mu.Unlock()
		if gate != nil {
			<-gate
		}
		var header [16]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		data := make([]byte, binary.BigEndian.Uint32(header[8:]))
		if _, err := io.ReadFull(r, data); err != nil {
			return
		}
		frames := [][]byte{s.handshake(data)}
		handshake := frames[0] != nil
		if !handshake {
			frames = c.execute(data)
		}
		for _, frame := range frames {
			binary.BigEndian.PutUint32(header[8:], uint32(len(frame)))
			if mangle := s.mangle.Load(); mangle != nil {
				(*mangle)(header[:], handshake)
			}
			if _, err := conn.Write(append(header[:], frame...)); err != nil {
				return
			}
		}
	}
}

// handshake answers the messages of the transport itself, nil for others.
func (s *socketServer) handshake(data []byte) []byte {
	s.vpp.mu.Lock()
	defer s.vpp.mu.Unlock()
	if binary.BigEndian.Uint16(data) != 15 {
		return nil
	}
	reply := &memclnt.SockclntCreateReply{Index: 0x80000000}
	for i, name := range names() {
		reply.MessageTable = append(reply.MessageTable, memclnt.MessageTableEntry{Index: uint16(i) + s.vpp.offset, Name: name})
	}
	out, err := codec.EncodeMsg(reply, 16)
	if err != nil {
		panic(err)
	}
	return out
}

// connectTo runs a link to a real socket and returns a channel of its states.
func connectTo(t *testing.T, cfg Config) (*Link, chan *messages.LinkState, func()) {
	t.Helper()
	l := New(cfg, quietLog())
	states := make(chan *messages.LinkState, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.Run(ctx, func(s *messages.LinkState) { states <- s })
	}()
	stop := func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Error("Run does not end")
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return l, states, stop
}

// await waits for a state.
func await(t *testing.T, states chan *messages.LinkState, what string, ok func(*messages.LinkState) bool) *messages.LinkState {
	t.Helper()
	patience := time.After(10 * time.Second)
	var last *messages.LinkState
	for {
		select {
		case last = <-states:
			if ok(last) {
				return last
			}
		case <-patience:
			t.Fatalf("no state that is %s, last %v", what, last)
		}
	}
}

// isUp and isDown are conditions for await.
func isUp(s *messages.LinkState) bool   { return s.GetUp() }
func isDown(s *messages.LinkState) bool { return !s.GetUp() }

func TestSocketLife(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.sock")
	_, states, _ := connectTo(t, Config{Socket: path, PollInterval: time.Millisecond, ProbeInterval: 20 * time.Millisecond, BackoffMax: 20 * time.Millisecond})
	await(t, states, "waiting for the file", func(s *messages.LinkState) bool { return strings.Contains(s.GetReason(), "no such file") })
	vpp := newFakeVPP()
	server := listen(t, vpp, path)
	first := await(t, states, "up", isUp)
	server.close()
	await(t, states, "down", isDown)
	await(t, states, "refused: the file stays after a crash", func(s *messages.LinkState) bool { return strings.Contains(s.GetReason(), "refused") })
	// The same process id, as in a container: only the socket file differs.
	listen(t, vpp, path)
	second := await(t, states, "up again", isUp)
	if second.GetBoot() == first.GetBoot() || second.GetSession() != 2 || !strings.HasPrefix(second.GetBoot(), "pid100@") {
		t.Errorf("states = %v, %v", first, second)
	}
	if file, err := os.Stat(path); err != nil || !Started(second.GetBoot()).Equal(file.ModTime()) || !Started("pid100").IsZero() {
		t.Errorf("%s: started at %v, %v", second.GetBoot(), Started(second.GetBoot()), err)
	}
}

func TestSocketReconnectKeepsBoot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.sock")
	server := listen(t, newFakeVPP(), path)
	_, states, _ := connectTo(t, Config{Socket: path, ProbeInterval: 20 * time.Millisecond})
	first := await(t, states, "up", isUp)
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	server.mu.Lock()
	_ = server.conns[0].Close()
	server.mu.Unlock()
	await(t, states, "down", isDown)
	if second := await(t, states, "up", isUp); second.GetBoot() != first.GetBoot() {
		t.Errorf("boot %s became %s without a restart", first.GetBoot(), second.GetBoot())
	}
}

func TestSocketThatIsNoSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, states, _ := connectTo(t, Config{Socket: path})
	await(t, states, "down with the reason", func(s *messages.LinkState) bool { return strings.Contains(s.GetReason(), "not a socket") })
}

// untilFull is a context that ends when the window of a link is full, or never gets full.
func untilFull(t *testing.T, l *Link) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	conn := l.current.Load()
	go func() {
		defer cancel()
		for full := false; !full && ctx.Err() == nil; time.Sleep(time.Millisecond) {
			conn.mu.Lock()
			full = conn.starved
			conn.mu.Unlock()
		}
	}()
	t.Cleanup(cancel)
	return ctx
}

// TestHungVPPNeverBlocksAWrite fills the window with the largest mappings there are while VPP does
// not read the socket: writes have no deadline, so one that blocks would hold the sender, with its
// probes, for as long as VPP hangs, and would be cut off when the socket closes.
func TestHungVPPNeverBlocksAWrite(t *testing.T) {
	large := add(1)
	for range 253 {
		large.Locals = append(large.Locals, nat44_ed.Nat44LbAddrPort{})
	}
	batches := map[string]func(i int) api.Message{
		"large": func(int) api.Message { return large },
		"small": func(int) api.Message { return &memclnt.ControlPing{} },
		"mixed": func(i int) api.Message {
			if i%2 == 0 {
				return add(uint16(i + 1))
			}
			return large
		},
	}
	for name, request := range batches {
		t.Run(name, func(t *testing.T) {
			vpp := newFakeVPP()
			path := filepath.Join(t.TempDir(), "api.sock")
			listen(t, vpp, path)
			made := newSocket(path)
			l, states, stop := connectTo(t, Config{
				Socket: path, transport: func() transport { return made }, ReplyTimeout: time.Minute, ProbeInterval: 5 * time.Millisecond,
			})
			await(t, states, "up", isUp)
			wake := vpp.hang()
			defer wake()
			var reqs []api.Message
			for i := range 2000 {
				reqs = append(reqs, request(i))
			}
			results, err := l.Do(untilFull(t, l), reqs)
			if err != nil || !errors.Is(results[len(results)-1].Err, ErrNotSent) {
				t.Fatalf("Do = %v, %v", results[len(results)-1].Err, err)
			}
			stop()
			made.write.Lock()
			defer made.write.Unlock()
			if made.torn {
				t.Error("a write was blocked until the socket was closed")
			}
		})
	}
}
