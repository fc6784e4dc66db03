package catalog

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	shortest    = 5 * time.Second // between two passes, whatever the TTL
	longest     = 5 * time.Minute
	confirm     = 45 * time.Second // between two snapshots, at most
	mostTargets = 100              // of SRV records
)

// DNS follows one name. It is a catalog.Source.
type DNS struct {
	options DNSOptions
	log     *slog.Logger
	dial    dialer
}

// NewDNS returns a source with options that Parse made.
func NewDNS(o DNSOptions, log *slog.Logger) *DNS {
	return &DNS{options: o, log: log, dial: new(net.Dialer).DialContext}
}

// Run satisfies catalog.Source. It never fails: a failed look-up makes a snapshot incomplete.
func (s *DNS) Run(ctx context.Context, publish func(Snapshot)) error {
	var last Snapshot
	var due time.Time
	delays, failed := retries(shortest), false
	for {
		if !time.Now().Before(due) {
			service, problems, ttl, err := s.resolve(ctx)
			if ctx.Err() != nil {
				return nil
			}
			pause := min(max(ttl, shortest), longest)
			if err != nil {
				if !failed {
					s.log.Warn("look-up failed, retrying", "name", s.options.Name, "err", err)
				}
				service = Service{Name: s.options.service(), Unknown: true}
				problems = []Problem{{Service: service.Name, Reason: ReasonSource, Message: err.Error()}}
				pause = delays.Step()
			} else if failed {
				s.log.Info("look-up succeeded again", "name", s.options.Name)
				delays = retries(shortest)
			}
			failed = err != nil
			last = Snapshot{Services: []Service{service}, Complete: err == nil, Problems: problems}
			due = time.Now().Add(pause)
		}
		publish(last)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(time.Until(due), confirm)):
		}
	}
}

// target is the target of an SRV record, with its priority and port.
type target struct {
	priority, port uint16
	name           string
}

// resolve looks everything up once, and returns for how long the result is valid. With an error
// there is no result.
func (s *DNS) resolve(ctx context.Context) (Service, []Problem, time.Duration, error) {
	l := &lookup{dial: s.dial, servers: s.options.Servers, ttl: math.MaxUint32}
	out := Service{Name: s.options.service(), Ports: []Port{s.options.Port}}
	var problems []Problem
	targets := []target{{name: s.options.Name}}
	if s.options.SRV {
		records, err := l.records(ctx, s.options.Name, dnsmessage.TypeSRV)
		if err != nil {
			return out, nil, 0, err
		}
		targets = targetsOf(records)
		if n := len(targets); n > mostTargets {
			problems = append(problems, Problem{
				Service: out.Name, Reason: ReasonLimit, Message: fmt.Sprintf("%d targets, at most %d are used", n, mostTargets),
			})
			targets = targets[:mostTargets]
		}
	}
	ready := -1 // priority of the group that is Ready
	known := map[string][]netip.Addr{}
	for _, t := range targets {
		addresses, again := known[t.name]
		if !again {
			var err error
			if addresses, err = l.addresses(ctx, t.name); err != nil {
				return out, nil, 0, err
			}
			known[t.name] = addresses
		}
		if len(addresses) > 0 && ready < 0 {
			ready = int(t.priority)
		}
		for _, a := range addresses {
			i := Instance{Address: a.String()}
			if s.options.SRV {
				i.ID, i.Ports = fmt.Sprintf("%s:%d", t.name, t.port), map[string]uint16{s.options.Port.Name: t.port}
			}
			if int(t.priority) != ready {
				i.State = NotReady
			}
			out.Instances = append(out.Instances, i)
		}
	}
	return out, problems, time.Duration(l.ttl) * time.Second, nil
}

// targetsOf returns the targets of SRV records, lowest priority first. A single target "." stands for
// no target (RFC 2782).
func targetsOf(records []dnsmessage.Resource) []target {
	var out []target
	for _, r := range records {
		if srv, is := r.Body.(*dnsmessage.SRVResource); is && nameText(srv.Target) != "" {
			out = append(out, target{srv.Priority, srv.Port, nameText(srv.Target)})
		}
	}
	slices.SortFunc(out, func(a, b target) int {
		return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.name, b.name), cmp.Compare(a.port, b.port))
	})
	return slices.Compact(out)
}

// addresses returns the addresses of a name, ordered, each once.
func (l *lookup) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, t := range []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA} {
		records, err := l.records(ctx, name, t)
		if err != nil {
			return nil, err
		}
		for _, r := range records {
			switch body := r.Body.(type) {
			case *dnsmessage.AResource:
				out = append(out, netip.AddrFrom4(body.A))
			case *dnsmessage.AAAAResource:
				out = append(out, netip.AddrFrom16(body.AAAA))
			}
		}
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out), nil
}

// DNSOptions of a source.
type DNSOptions struct {
	// Name to look up, in lower case, without a dot at the end.
	Name string
	// SRV says that Name has SRV records, not addresses.
	SRV bool
	// Port of the service. Number 0 means the port of the SRV records; without SRV it is never 0.
	Port Port
	// Servers in the order in which they are asked.
	Servers []netip.AddrPort
}

// ParseDNS returns the options in NAME:PORT@SERVER or _PORT._PROTOCOL.NAME[:PORT]@SERVER, with
// servers ADDRESS[:PORT],... The error names the wrong part.
func ParseDNS(text string) (DNSOptions, error) {
	what, where, _ := strings.Cut(text, "@")
	name, number, numbered := strings.Cut(what, ":")
	o := DNSOptions{Name: strings.TrimSuffix(strings.ToLower(name), ".")}
	labels := strings.Split(o.Name, ".")
	if err := checkName(o.Name, labels); err != nil {
		return DNSOptions{}, err
	}
	o.SRV = strings.HasPrefix(o.Name, "_")
	if o.SRV {
		if len(labels) < 3 || !slices.Contains([]string{"_tcp", "_udp", "_sctp"}, labels[1]) {
			return DNSOptions{}, fmt.Errorf("name %q: expected _PORT._tcp.NAME, _PORT._udp.NAME or _PORT._sctp.NAME", name)
		}
		o.Port.Name, o.Port.Protocol = labels[0][1:], strings.ToUpper(labels[1][1:])
	}
	if numbered {
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil || n == 0 {
			return DNSOptions{}, fmt.Errorf("port %q: expected 1 to 65535", number)
		}
		o.Port.Number = uint16(n)
	} else if !o.SRV {
		return DNSOptions{}, fmt.Errorf("name %q: it needs a port, NAME:PORT", name)
	}
	if where == "" {
		return DNSOptions{}, errors.New("server is missing: expected @ADDRESS[:PORT] at the end")
	}
	for server := range strings.SplitSeq(where, ",") {
		address, err := parseServer(server)
		if err != nil {
			return DNSOptions{}, err
		}
		o.Servers = append(o.Servers, address)
	}
	return o, nil
}

// service returns the name of the service in the catalog.
func (o *DNSOptions) service() string {
	labels := strings.Split(o.Name, ".")
	if o.SRV {
		return labels[2]
	}
	return labels[0]
}

// checkName returns an error if the name is not valid in a query.
func checkName(name string, labels []string) error {
	for _, label := range labels {
		strange := strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_")
		if label == "" || label == "_" || len(label) > 63 || strange != "" || len(name) > 253 {
			return fmt.Errorf("name %q is no domain name", name)
		}
	}
	return nil
}

// parseServer returns the address of a server; its port is 53 if none is given.
func parseServer(text string) (netip.AddrPort, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.AddrPortFrom(address, 53), nil
	}
	out, err := netip.ParseAddrPort(text)
	if err != nil || out.Port() == 0 {
		return netip.AddrPort{}, fmt.Errorf("server %q: expected an IP address, with or without :PORT", text)
	}
	return out, nil
}

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
