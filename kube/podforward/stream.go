package podforward

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moby/spdystream/spdy"
)

// Names of the protocol between client and kubelet, which the API server passes through: a
// connection of SPDY in which the client opens a stream for errors and a stream for data.
const (
	upgrade         = "SPDY/3.1"
	protocol        = "portforward.k8s.io"
	protocolHeader  = "X-Stream-Protocol-Version"
	errorID, dataID = spdy.StreamId(1), spdy.StreamId(3)
)

const (
	// dialTimeout limits the way to the kubelet.
	dialTimeout = 15 * time.Second
	// idleTimeout is how long a connection waits for the next request of a command.
	idleTimeout = 5 * time.Second
	// mostReason limits the text of a kubelet, in bytes.
	mostReason = 1000
)

// refused is the reason of a kubelet that has no connection to the port.
type refused struct{ text string }

// Error satisfies error.
func (r *refused) Error() string { return r.text }

// forwarded returns a transport that connects to a port of a pod's loopback. A connection carries
// one request after the other.
func forwarded(client *http.Client, pod *url.URL, port string) http.RoundTripper {
	return &transport{&http.Transport{
		IdleConnTimeout: idleTimeout, DisableCompression: true, // answers come from a budget
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			// the context of a dial does not end with the request
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return dial(ctx, client, pod, port)
		},
	}}
}

// transport returns the reason of a kubelet without the words of the HTTP client around it.
type transport struct{ *http.Transport }

// RoundTrip satisfies http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.Transport.RoundTrip(r)
	if why, is := errors.AsType[*refused](err); is {
		err = why
	}
	return response, err
}

// dial opens a stream to a port of a pod.
func dial(ctx context.Context, client *http.Client, pod *url.URL, port string) (net.Conn, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, pod.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {upgrade}, protocolHeader: {protocol}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	conn, switched := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !switched || response.Header.Get(protocolHeader) != protocol {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	asked, ask := context.WithCancel(context.Background())
	s := &stream{conn: conn, port: port, writer: bufio.NewWriter(conn), asked: asked.Done(), ask: ask}
	s.framer, err = spdy.NewFramerWithOptions(s.writer, conn,
		spdy.WithMaxControlFramePayloadSize(4<<10), spdy.WithMaxHeaderFieldSize(1<<10), spdy.WithMaxHeaderCount(16))
	if err == nil {
		err = s.open()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a stream to port %s of the pod: %w", port, err), conn.Close())
	}
	return s, nil
}

// stream is a connection to a port of a pod. It reads a frame only while its user reads, and has at
// most one of them (16 MiB): the kubelet of a node that was taken over may send anything. One
// goroutine may read and another one write at the same time.
type stream struct {
	conn   io.ReadWriteCloser
	port   string
	framer *spdy.Framer

	writing sync.Mutex
	writer  *bufio.Writer

	// asked is closed by ask with the first byte that is sent: nothing is read before, as the HTTP
	// client logs bytes that it has not asked for.
	asked <-chan struct{}
	ask   func()

	unread []byte // of the last frame
	end    error  // is returned after unread; nil = the stream goes on
}

// open opens both streams. The one for errors is only read.
func (s *stream) open() error {
	headers := func(kind string) http.Header {
		return http.Header{"streamtype": {kind}, "port": {s.port}, "requestid": {"0"}}
	}
	return errors.Join(
		s.write(&spdy.SynStreamFrame{StreamId: errorID, Headers: headers("error"), CFHeader: spdy.ControlFrameHeader{Flags: spdy.ControlFlagFin}}),
		s.write(&spdy.SynStreamFrame{StreamId: dataID, Headers: headers("data")}))
}

// write sends a frame.
func (s *stream) write(f spdy.Frame) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.framer.WriteFrame(f); err != nil {
		return err
	}
	return s.writer.Flush()
}

// Write satisfies net.Conn.
func (s *stream) Write(p []byte) (int, error) {
	s.ask()
	if err := s.write(&spdy.DataFrame{StreamId: dataID, Data: p}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Read satisfies net.Conn.
func (s *stream) Read(p []byte) (int, error) {
	<-s.asked
	for len(s.unread) == 0 {
		if s.end != nil {
			return 0, s.end
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.unread)
	s.unread = s.unread[n:]
	return n, nil
}

// next reads one frame. A kubelet opens no stream and sends no headers.
func (s *stream) next() error {
	frame, err := s.framer.ReadFrame()
	if err != nil {
		return err
	}
	switch f := frame.(type) {
	case *spdy.DataFrame:
		switch {
		case f.StreamId == dataID:
			s.unread = f.Data
			if f.Flags&spdy.DataFlagFin != 0 {
				s.end = io.EOF
			}
		case f.StreamId == errorID && len(f.Data) > 0:
			return s.reason(string(f.Data[:min(len(f.Data), mostReason)]))
		}
	case *spdy.SynReplyFrame:
	case *spdy.PingFrame:
		return s.write(f)
	case *spdy.RstStreamFrame, *spdy.GoAwayFrame:
		return io.EOF
	default:
		return fmt.Errorf("the kubelet sends a frame that does not belong to port forwarding: %T", f)
	}
	return nil
}

// reason is the error of a kubelet with this text.
func (s *stream) reason(text string) error {
	if strings.Contains(text, "connection refused") {
		text = "nothing listens on port " + s.port + " of the node's loopback: its agent does not run, or api.httpAddress has another port than --address"
	}
	return &refused{text}
}

// Close satisfies net.Conn.
func (s *stream) Close() error {
	s.ask()
	return s.conn.Close()
}

// The rest of net.Conn, which HTTP clients do not need.

// LocalAddr satisfies net.Conn.
func (*stream) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr satisfies net.Conn.
func (*stream) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline satisfies net.Conn.
func (*stream) SetDeadline(time.Time) error { return os.ErrNoDeadline }

// SetReadDeadline satisfies net.Conn.
func (*stream) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

// SetWriteDeadline satisfies net.Conn.
func (*stream) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
