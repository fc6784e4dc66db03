package catalog

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
	"strings"
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

// message is the content of a usable answer.
type message struct {
	exists   bool // the name at the end of the chain exists
	answers  []dnsmessage.Resource
	negative bool   // there is an SOA record: missing records do not exist
	ttl      uint32 // seconds for which the SOA record allows to remember this
}

// decode reads an answer. mine says that it answers this question; otherwise the right answer may
// still come. The error says why the answer is not usable.
func decode(answer []byte, id uint16, q dnsmessage.Question) (m message, mine bool, err error) {
	var p dnsmessage.Parser
	h, err := p.Start(answer)
	if err != nil {
		return m, false, fmt.Errorf("decode the answer: %w", err)
	}
	if h.ID != id || !h.Response || h.OpCode != 0 {
		return m, false, errors.New("the answer belongs to another query")
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 || questions[0].Type != q.Type || questions[0].Class != q.Class ||
		!strings.EqualFold(questions[0].Name.String(), q.Name.String()) {
		return m, false, errors.New("the answer belongs to another question")
	}
	switch {
	case h.Truncated:
		return m, true, errTruncated
	case h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError:
		return m, true, fmt.Errorf("the server answers %s", strings.TrimPrefix(h.RCode.String(), "RCode"))
	}
	m.exists = h.RCode == dnsmessage.RCodeSuccess
	if m.answers, err = p.AllAnswers(); err != nil {
		return m, true, fmt.Errorf("decode the answer: %w", err)
	}
	authorities, err := p.AllAuthorities()
	if err != nil {
		return m, true, fmt.Errorf("decode the answer: %w", err)
	}
	for _, r := range authorities {
		if soa, is := r.Body.(*dnsmessage.SOAResource); is {
			m.negative, m.ttl = true, min(r.Header.TTL, soa.MinTTL)
		}
	}
	if len(m.answers) == 0 && !h.Authoritative && !h.RecursionAvailable {
		return m, true, errors.New("the server does not know the name and asks no other server")
	}
	return m, true, nil
}

// mostAliases is the largest number of CNAME records that are followed for one name.
const mostAliases = 8

// lookup is one pass through the records of a source.
type lookup struct {
	dial    dialer
	servers []netip.AddrPort
	ttl     uint32 // seconds, the shortest of all records that were read
}

// records returns the records of a type that a name has, also through aliases; none if it has none
// or does not exist.
func (l *lookup) records(ctx context.Context, name string, t dnsmessage.Type) ([]dnsmessage.Resource, error) {
	for aliases := 0; ; {
		q := dnsmessage.Question{Type: t, Class: dnsmessage.ClassINET}
		var err error
		if q.Name, err = dnsmessage.NewName(name + "."); err != nil {
			return nil, fmt.Errorf("look up %.80q: %w", name, err)
		}
		m, err := l.dial.ask(ctx, l.servers, q)
		if err != nil {
			return nil, err
		}
		begin := aliases
		for {
			found, next := l.owned(m.answers, name, t)
			if len(found) > 0 {
				return found, nil
			}
			if next == "" {
				break
			}
			aliases++
			if aliases > mostAliases {
				return nil, fmt.Errorf("look up %s: more than %d aliases", q.Name, mostAliases)
			}
			name = next
		}
		// The answer has an alias without the records of its target, so the target needs a query of
		// its own.
		if aliases == begin || !m.exists || m.negative {
			l.remember(m.ttl)
			return nil, nil
		}
	}
}

// owned returns the records of a type that a name has. If there are none, it returns the target of
// its alias.
func (l *lookup) owned(answers []dnsmessage.Resource, name string, t dnsmessage.Type) (found []dnsmessage.Resource, alias string) {
	for _, r := range answers {
		if r.Header.Class != dnsmessage.ClassINET || nameText(r.Header.Name) != name {
			continue
		}
		if r.Header.Type == t {
			found = append(found, r)
			l.remember(r.Header.TTL)
		} else if body, is := r.Body.(*dnsmessage.CNAMEResource); is && len(found) == 0 {
			alias = nameText(body.CNAME)
			l.remember(r.Header.TTL)
		}
	}
	return found, alias
}

// remember keeps the TTL if it is the shortest.
func (l *lookup) remember(ttl uint32) { l.ttl = min(l.ttl, ttl) }

// nameText returns a name in the form of Options: lower case, without the dot at the end.
func nameText(n dnsmessage.Name) string { return strings.ToLower(strings.TrimSuffix(n.String(), ".")) }
