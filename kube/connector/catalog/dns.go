package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
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
