package healthcheck

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// limit is the state of one listener.
type limit struct {
	most   int
	closed func()

	mu   sync.Mutex
	open int
	idle list.List // of *conn without a request in a handler, the longest idle first
}

// Bound limits the connections of a server on a listener, so that no client can lock out the
// others, and returns the listener that the server must serve.
//
// If a server stops accepting at its limit, a few hundred idle connections block it: the probes of
// a load balancer or the kubelet get no answer. Here a new connection replaces the connection that
// has been idle for the longest time. A connection whose request is being answered is never closed.
// If all connections are busy, the new one is closed. The limit starts no goroutine.
//
// Bound wraps the handler of the server, so it must be called after the handler is set and
// before Serve. closed is called for each connection that the limit closes, from the goroutine that
// accepts; it must not block.
func Bound(server *http.Server, inner net.Listener, most int, closed func()) net.Listener {
	l := &limit{most: most, closed: closed}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.busy()
			defer c.rest()
		}
		handler.ServeHTTP(w, r)
	})
	earlier := server.ConnContext
	server.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if earlier != nil {
			ctx = earlier(ctx, c)
		}
		return context.WithValue(ctx, connKey{}, c)
	}
	return &listener{inner, l}
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// listener counts the connections that it accepts.
type listener struct {
	net.Listener
	limit *limit
}

func (l *listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, limit: l.limit}
	if oldest := l.limit.add(c); oldest != nil {
		l.limit.closed() // before the client can notice
		_ = oldest.Conn.Close()
	}
	return c, nil
}

// add counts a connection. Above the limit it returns the connection to close, which may be the new
// one.
func (l *limit) add(c *conn) (oldest *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	c.place = l.idle.PushBack(c)
	if l.open <= l.most {
		return nil
	}
	oldest, _ = l.idle.Front().Value.(*conn)
	oldest.forget()
	return oldest
}

// conn is an accepted connection.
type conn struct {
	net.Conn
	limit *limit

	// The lock of the limit guards the fields below.
	place *list.Element // in the list of idle connections; nil = busy or gone
	gone  bool
}

func (c *conn) Close() error {
	c.limit.mu.Lock()
	c.forget()
	c.limit.mu.Unlock()
	return c.Conn.Close()
}

// forget stops counting a connection, once; the lock is held.
func (c *conn) forget() {
	if c.gone {
		return
	}
	c.gone = true
	c.limit.open--
	c.leave()
}

// leave takes a connection out of the list of idle ones; the lock is held.
func (c *conn) leave() {
	if c.place != nil {
		c.limit.idle.Remove(c.place)
		c.place = nil
	}
}

// busy marks a connection whose request is being answered.
func (c *conn) busy() {
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	c.leave()
}

// rest marks a connection that waits for its next request.
func (c *conn) rest() {
	c.limit.mu.Lock()
	defer c.limit.mu.Unlock()
	if !c.gone && c.place == nil {
		c.place = c.limit.idle.PushBack(c)
	}
}
