package informers

import (
	"context"
	"net"
	"slices"
	"sync"
	"syscall"
)

// link is a TCP load balancer in memory, in front of a server that accepts from it.
type link struct {
	accepted chan net.Conn
	done     chan struct{}
	ended    sync.Once

	mu     sync.Mutex
	mode   mode
	thawed chan struct{} // closed in the modes that pass bytes
	conns  []net.Conn
	dialed int
}

// mode is the behaviour of a load balancer.
type mode int

const (
	passes  mode = iota
	closes       // it closes all connections, old and new
	stopped      // it accepts in its kernel, and passes no byte on
	refuses      // it passes no byte on, and refuses new connections
)

func newLink() *link {
	l := &link{accepted: make(chan net.Conn), done: make(chan struct{}), thawed: make(chan struct{})}
	close(l.thawed)
	return l
}

// become changes the mode.
func (l *link) become(m mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.frozen()
	l.mode = m
	switch {
	case l.frozen() && !before:
		l.thawed = make(chan struct{})
	case !l.frozen() && before:
		close(l.thawed)
	}
	if m == closes {
		l.cut()
	}
}

// cut closes all connections. The lock must be held.
func (l *link) cut() {
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
}

func (l *link) frozen() bool { return l.mode == stopped || l.mode == refuses }

// dial is the dialer of a client.
func (l *link) dial(context.Context, string, string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialed++
	near, front := net.Pipe()
	switch l.mode {
	case refuses:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case closes:
		go func() {
			_, _ = front.Read(make([]byte, 64<<10)) // the handshake, which the kernel accepts
			_ = front.Close()
		}()
		return near, nil
	}
	back, far := net.Pipe()
	l.conns = append(l.conns, front, back)
	go l.carry(front, back)
	go l.carry(back, front)
	go func() {
		select {
		case l.accepted <- far:
		case <-l.done:
			_ = far.Close()
		}
	}()
	return near, nil
}

// connections returns how many were dialed.
func (l *link) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dialed
}

// carry accepts all bytes, like the kernel, and passes them on while the load balancer runs.
func (l *link) carry(from, to net.Conn) {
	queue := make(chan []byte, 10000)
	go func() {
		for data := range queue {
			l.mu.Lock()
			thawed := l.thawed
			l.mu.Unlock()
			<-thawed
			_, _ = to.Write(data)
		}
		_ = to.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			queue <- slices.Clone(buffer[:n])
		}
		if err != nil {
			close(queue)
			return
		}
	}
}

// Accept, Close and Addr satisfy net.Listener, for the server.
func (l *link) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *link) Close() error {
	l.ended.Do(func() { close(l.done) })
	l.become(passes)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
	return nil
}

func (*link) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 6443} }
