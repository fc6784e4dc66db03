package podforward

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Names of the protocol between client and kubelet, which the API server passes through: a
// connection of SPDY in which the client opens a stream for errors and a stream for data.
const (
	upgrade        = "SPDY/3.1"
	protocol       = "portforward.k8s.io"
	protocolHeader = "X-Stream-Protocol-Version"
)

// Kinds of frames. A frame is its kind, eight flags, a length of 24 bits, and a payload. The kind
// of a frame of data is its stream.
const (
	errorStream, dataStream = 1, 3

	synStream    = 0x80030001
	synReply     = 0x80030002
	rstStream    = 0x80030003
	settings     = 0x80030004
	ping         = 0x80030006
	goAway       = 0x80030007
	windowUpdate = 0x80030009

	fin        = 1 << 24 // the flag of the last frame of a stream
	lengthMask = 1<<24 - 1
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

func (r *refused) Error() string { return r.text }

// forwarded returns a transport that connects to a port of a pod's loopback. A connection carries
// one request after the other.
func forwarded(client *http.Client, pod *url.URL, port string) http.RoundTripper {
	return &transport{&http.Transport{
		// answers come from a budget
		IdleConnTimeout: idleTimeout, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
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
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		return nil, refusal(response)
	}
	conn, switched := response.Body.(io.ReadWriteCloser)
	if !switched || response.Header.Get(protocolHeader) != protocol {
		return nil, errors.Join(errors.New("the API server switches to another protocol than "+protocol), response.Body.Close())
	}
	asked, ask := context.WithCancel(context.Background())
	s := &stream{conn: conn, port: port, in: bufio.NewReader(conn), asked: asked.Done(), ask: ask, ended: map[uint32]bool{}}
	if err := s.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open a stream to port %s of the pod: %w", port, err), conn.Close())
	}
	return s, nil
}

// stream is a connection to a port of a pod. The kubelet of a node that was taken over may send
// anything: the stream reads only while its user reads, keeps no frame, and decompresses nothing.
// One goroutine may read and another one write at the same time.
type stream struct {
	conn    io.ReadWriteCloser
	port    string
	in      *bufio.Reader
	writing sync.Mutex

	// asked is closed by ask with the first byte that is sent: nothing is read before, as the HTTP
	// client logs bytes that it has not asked for.
	asked <-chan struct{}
	ask   func()

	left  int             // bytes of the frame of data that is being read
	ended map[uint32]bool // streams that the kubelet has ended
}

// open opens both streams. The one for errors is only read.
func (s *stream) open() error {
	var payload bytes.Buffer
	names := zlib.NewWriter(&payload) // one for the connection
	for _, one := range []struct {
		id, flags uint32
		kind      string
	}{{errorStream, fin, "error"}, {dataStream, 0, "data"}} {
		payload.Reset()
		// the stream, no other one that it belongs to, no priority
		payload.Write(append(binary.BigEndian.AppendUint32(nil, one.id), 0, 0, 0, 0, 0, 0))
		headers := []string{"streamtype", one.kind, "port", s.port, "requestid", "0"}
		block := binary.BigEndian.AppendUint32(nil, uint32(len(headers)/2))
		for _, text := range headers {
			block = append(binary.BigEndian.AppendUint32(block, uint32(len(text))), text...)
		}
		if _, err := names.Write(block); err != nil {
			return err
		}
		if err := names.Flush(); err != nil {
			return err
		}
		if err := s.write(synStream, one.flags, payload.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// write sends a frame.
func (s *stream) write(kind, flags uint32, payload []byte) error {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, kind), flags|uint32(len(payload)))
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := s.conn.Write(append(head, payload...))
	return err
}

func (s *stream) Write(p []byte) (int, error) {
	s.ask()
	for part := range slices.Chunk(p, 1<<16) {
		if err := s.write(dataStream, 0, part); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Read satisfies net.Conn. The reason of an end may follow the end of the data.
func (s *stream) Read(p []byte) (int, error) {
	<-s.asked
	for s.left == 0 {
		if len(s.ended) == 2 {
			return 0, io.EOF
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.in.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// next reads the head of a frame of data, or a whole frame of another kind. A kubelet opens no
// stream and sends no headers.
func (s *stream) next() error {
	var head [8]byte
	if _, err := io.ReadFull(s.in, head[:]); err != nil {
		return err
	}
	kind, flags := binary.BigEndian.Uint32(head[:4]), binary.BigEndian.Uint32(head[4:])
	length := int(flags & lengthMask)
	if flags&fin != 0 && (kind == dataStream || kind == errorStream) {
		s.ended[kind] = true
	}
	switch {
	case kind == dataStream:
		s.left = length
		return nil
	case kind == errorStream && length > 0:
		// a part is better than none
		text, _ := io.ReadAll(io.LimitReader(s.in, int64(min(length, mostReason))))
		return s.reason(string(text))
	case kind == ping && length == 4, kind == rstStream && length == 8:
		payload := make([]byte, length)
		if _, err := io.ReadFull(s.in, payload); err != nil {
			return err
		}
		if kind == ping {
			return s.write(ping, 0, payload)
		}
		if id := binary.BigEndian.Uint32(payload); id == dataStream || id == errorStream {
			s.ended[id] = true
		}
		return nil
	case kind == goAway:
		return io.EOF
	case kind == synReply, kind == errorStream, kind == settings, kind == windowUpdate:
		_, err := s.in.Discard(length)
		return err
	}
	return fmt.Errorf("the kubelet sends a frame that does not belong to port forwarding: %#x", kind)
}

// reason is the error of a kubelet with this text.
func (s *stream) reason(text string) error {
	if strings.Contains(text, "connection refused") {
		text = "nothing listens on port " + s.port + " of the node's loopback: its agent does not run, or api.httpAddress has another port than --address"
	}
	return &refused{text}
}

func (s *stream) Close() error {
	s.ask()
	return s.conn.Close()
}

// The rest of net.Conn, which HTTP clients do not need.

func (*stream) LocalAddr() net.Addr { return &net.TCPAddr{} }

func (*stream) RemoteAddr() net.Addr { return &net.TCPAddr{} }

func (*stream) SetDeadline(time.Time) error { return os.ErrNoDeadline }

func (*stream) SetReadDeadline(time.Time) error { return os.ErrNoDeadline }

func (*stream) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }
