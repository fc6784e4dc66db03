package dnssource

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	patience   = 2 * time.Second // for one query to one server
	rounds     = 2               // passes through the servers, because a datagram may get lost
	udpPayload = 1232            // bytes of an answer that no network fragments
)

var errTruncated = errors.New("the answer is truncated")

// dialer connects to a server.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// ask returns the first usable answer of the servers, or the last error.
func (d dialer) ask(ctx context.Context, servers []netip.AddrPort, q dnsmessage.Question) (message, error) {
	var err error
	for range rounds {
		for _, server := range servers {
			var m message
			if m, err = d.exchange(ctx, "udp", server, q); errors.Is(err, errTruncated) {
				m, err = d.exchange(ctx, "tcp", server, q)
			}
			if err == nil || ctx.Err() != nil {
				return m, err
			}
			err = fmt.Errorf("look up %s of %s at %s: %w", q.Type.String()[len("Type"):], q.Name, server, err)
		}
	}
	return message{}, err
}

// exchange asks one server once. The kernel chooses a random source port, because the socket is
// new.
func (d dialer) exchange(ctx context.Context, network string, server netip.AddrPort, q dnsmessage.Question) (message, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	id, query, err := newQuery(q)
	if err != nil {
		return message{}, err
	}
	conn, err := d(ctx, network, server.String())
	if err != nil {
		return message{}, err
	}
	defer conn.Close() //nolint:errcheck // the answer is read, or there is none
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if network == "tcp" {
		query = append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)
	}
	if _, err := conn.Write(query); err != nil {
		return message{}, fmt.Errorf("send: %w", plain(err))
	}
	for {
		answer, err := receive(conn, network)
		if err != nil {
			return message{}, fmt.Errorf("receive over %s: %w", network, plain(err))
		}
		m, mine, err := decode(answer, id, q)
		if mine || network == "tcp" {
			return m, err
		}
	}
}

// plain returns an error without the port of the client, which changes with each query.
func plain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("no answer within %s", patience)
	}
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		return op.Err
	}
	return err
}

// newQuery returns a query with its ID. It asks for recursion and allows answers of udpPayload
// bytes.
func newQuery(q dnsmessage.Question) (id uint16, query []byte, err error) {
	var random [2]byte
	_, _ = rand.Read(random[:]) // never fails
	id = binary.BigEndian.Uint16(random[:])
	m := dnsmessage.Message{
		Header:      dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions:   []dnsmessage.Question{q},
		Additionals: []dnsmessage.Resource{{Body: &dnsmessage.OPTResource{}}},
	}
	opt := &m.Additionals[0].Header
	if err := opt.SetEDNS0(udpPayload, dnsmessage.RCodeSuccess, false); err != nil {
		return 0, nil, fmt.Errorf("make the query: %w", err)
	}
	if query, err = m.Pack(); err != nil {
		err = fmt.Errorf("make the query: %w", err)
	}
	return id, query, err
}

// receive reads one message.
func receive(conn net.Conn, network string) ([]byte, error) {
	if network == "udp" {
		buffer := make([]byte, 1<<16)
		n, err := conn.Read(buffer)
		return buffer[:n], err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	buffer := make([]byte, binary.BigEndian.Uint16(size[:]))
	_, err := io.ReadFull(conn, buffer)
	return buffer, err
}
