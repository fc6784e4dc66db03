package dnssource

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

const (
	shortest    = 5 * time.Second // between two passes, whatever the TTL
	longest     = 5 * time.Minute
	lastDelay   = time.Minute      // after failures
	confirm     = 45 * time.Second // between two snapshots, at most
	mostTargets = 100              // of SRV records
)

// Source follows one name. It is a catalog.Source.
type Source struct {
	options Options
	log     *slog.Logger
	dial    dialer
}

// New returns a source with options that Parse made.
func New(o Options, log *slog.Logger) *Source {
	return &Source{options: o, log: log, dial: new(net.Dialer).DialContext}
}

// Run satisfies catalog.Source. It never fails: a failed look-up makes a snapshot incomplete.
func (s *Source) Run(ctx context.Context, publish func(catalog.Snapshot)) error {
	var last catalog.Snapshot
	var due time.Time
	delay := shortest
	for {
		if !time.Now().Before(due) {
			service, problems, ttl, err := s.resolve(ctx)
			if ctx.Err() != nil {
				return nil
			}
			wait := min(max(ttl, shortest), longest)
			if err != nil {
				if delay == shortest {
					s.log.Warn("look-up failed, retrying", "name", s.options.Name, "err", err)
				}
				service = catalog.Service{Name: s.options.service(), Unknown: true}
				problems = []catalog.Problem{{Service: service.Name, Reason: catalog.ReasonSource, Message: err.Error()}}
				wait = delay/2 + rand.N(delay/2)
				delay = min(2*delay, lastDelay)
			} else if delay != shortest {
				s.log.Info("look-up succeeded again", "name", s.options.Name)
				delay = shortest
			}
			last = catalog.Snapshot{Services: []catalog.Service{service}, Complete: err == nil, Problems: problems}
			due = time.Now().Add(wait)
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
func (s *Source) resolve(ctx context.Context) (catalog.Service, []catalog.Problem, time.Duration, error) {
	l := &lookup{dial: s.dial, servers: s.options.Servers, ttl: math.MaxUint32}
	out := catalog.Service{Name: s.options.service(), Ports: []catalog.Port{s.options.Port}}
	var problems []catalog.Problem
	targets := []target{{name: s.options.Name}}
	if s.options.SRV {
		records, err := l.records(ctx, s.options.Name, dnsmessage.TypeSRV)
		if err != nil {
			return out, nil, 0, err
		}
		targets = targetsOf(records)
		if n := len(targets); n > mostTargets {
			problems = append(problems, catalog.Problem{
				Service: out.Name, Reason: catalog.ReasonLimit, Message: fmt.Sprintf("%d targets, at most %d are used", n, mostTargets),
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
			i := catalog.Instance{Address: a.String()}
			if s.options.SRV {
				i.ID, i.Ports = fmt.Sprintf("%s:%d", t.name, t.port), map[string]uint16{s.options.Port.Name: t.port}
			}
			if int(t.priority) != ready {
				i.State = catalog.NotReady
			}
			out.Instances = append(out.Instances, i)
		}
	}
	return out, problems, time.Duration(l.ttl) * time.Second, nil
}

// targetsOf returns the targets of SRV records, lowest priority first. A single target "." means
// that there are no targets.
func targetsOf(records []dnsmessage.Resource) []target {
	var out []target
	for _, r := range records {
		if srv, is := r.Body.(*dnsmessage.SRVResource); is && text(srv.Target) != "" {
			out = append(out, target{srv.Priority, srv.Port, text(srv.Target)})
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
