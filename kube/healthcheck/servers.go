package healthcheck

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Config of Servers and of a NodeServer. The zero value of a field means its default.
type Config struct {
	// Listen opens a listener; network is "tcp4" or "tcp6", address is "ip:port". It should not
	// block. Default net.Listen.
	Listen func(network, address string) (net.Listener, error)
	// Healthy reports whether the node keeps up with the cluster (serviceProxyHealthy in the
	// answers of Servers). It is called for every request, from any goroutine, and must not block.
	// Default: always true.
	Healthy func() bool
	// OnProblem is called when an address of a service is not served, when the reason changes,
	// and when the problem is over. It is called from the goroutine of Run and must not block.
	// Default: only the log has it.
	OnProblem func(Problem)
	// RetryMin and RetryMax bound the delay before an address is tried again; it doubles.
	// Default 1 s and 30 s.
	RetryMin, RetryMax time.Duration
	// CloseTimeout is the time that requests under way get when their listener is closed.
	// Default 1 s.
	CloseTimeout time.Duration
	// MostConnections is the largest number of connections of one address; above it a new
	// connection replaces the longest idle one. Default 128, of a NodeServer 512.
	MostConnections int
	// OnLimit is called for each connection that is closed because of MostConnections, from any
	// goroutine; it must not block. Default: no call.
	OnLimit func()
	// Log gets the problems and the listeners. Default slog.Default().
	Log *slog.Logger
}

// withDefaults returns the configuration with every zero field replaced.
func (c Config) withDefaults() Config {
	if c.Listen == nil {
		c.Listen = net.Listen
	}
	if c.Healthy == nil {
		c.Healthy = func() bool { return true }
	}
	if c.OnProblem == nil {
		c.OnProblem = func(Problem) {}
	}
	if c.OnLimit == nil {
		c.OnLimit = func() {}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.MostConnections = cmp.Or(c.MostConnections, portConnections)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 30*time.Second)
	c.CloseTimeout = cmp.Or(c.CloseTimeout, time.Second)
	return c
}

// Servers are the HTTP servers of all health-check node ports of this node.
type Servers struct {
	// Any goroutine may read these fields; New sets them.
	cfg   Config
	log   *slog.Logger
	wake  chan struct{} // holds one signal that want is new
	moved chan struct{} // holds one signal that a socket has changed

	// mu guards the fields of this group, for Set, Status and Run.
	mu     sync.Mutex
	want   []Check
	sets   uint64 // calls of Set so far
	status Status

	// Only the goroutine of Run, and goroutines that it starts, use the fields below.
	running  sync.WaitGroup
	applied  uint64 // value of sets for which the ports are open
	ports    map[netip.AddrPort]*port
	refused  map[claim]Problem // refused claims of the current plan
	reported map[claim]Problem // problems that OnProblem knows
}

// New returns servers that listen nowhere.
func New(cfg Config) *Servers {
	cfg = cfg.withDefaults()
	return &Servers{
		cfg: cfg, log: cfg.Log, wake: make(chan struct{}, 1), moved: make(chan struct{}, 1), ports: map[netip.AddrPort]*port{}, refused: map[claim]Problem{}, reported: map[claim]Problem{},
	}
}

// Set takes the complete list of health checks of this node; listeners of other checks are closed.
// The order does not matter, and the same list again changes nothing. Set never blocks; the latest
// list wins. The caller must not modify the messages in the list any more.
func (s *Servers) Set(want []Check) {
	want = slices.Clone(want) // handlers read it as long as it is the latest
	s.mu.Lock()
	s.want = want
	s.sets++
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // Run has not seen the last one yet
	}
}

// Run serves until ctx ends, then closes everything and returns nil. It is called once.
func (s *Servers) Run(ctx context.Context) error {
	defer s.running.Wait()
	defer s.closeAll()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
			s.apply(ctx)
		case <-s.moved:
		}
		s.report()
	}
}

// apply opens and closes listeners to match the latest list. It closes unwanted listeners first,
// because another service may want the port.
func (s *Servers) apply(ctx context.Context) {
	s.mu.Lock()
	want := s.want
	s.applied = s.sets
	s.mu.Unlock()
	planned := plan(want)
	s.refused = planned.refused
	for addr, p := range s.ports {
		if planned.owners[addr] == nil {
			s.close(p)
			delete(s.ports, addr)
		}
	}
	// A port that stays open gets its new check without closing, so that load balancers see no
	// gap.
	for addr, check := range planned.owners {
		if p := s.ports[addr]; p != nil {
			p.check.Store(check)
		} else {
			s.open(ctx, addr, check)
		}
	}
}

// closeAll closes every address at the end of Run.
func (s *Servers) closeAll() {
	for _, p := range s.ports {
		s.close(p)
	}
	s.ports = map[netip.AddrPort]*port{}
	s.publish()
}

// Status is the state of the servers at one moment.
type Status struct {
	// Applied counts the calls of Set that have taken effect. A call that was overtaken counts when
	// the later call takes effect.
	Applied uint64
	// Ports are the addresses that a service owns, ordered.
	Ports []PortStatus
	// Problems are the problems reported to OnProblem that are not over, ordered by service and
	// address.
	Problems []Problem
}

// PortStatus is one listen address.
type PortStatus struct {
	// Address is the listen address.
	Address netip.AddrPort
	// Service owns the address.
	Service string
	// Listening is false while the address cannot be opened.
	Listening bool
}

// Status returns the current state. Any goroutine may ask.
func (s *Servers) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// publish makes the current state visible to Status. The slices are not modified afterwards.
func (s *Servers) publish() {
	ports := make([]PortStatus, 0, len(s.ports))
	for addr, p := range s.ports {
		at, _ := p.state()
		ports = append(ports, PortStatus{Address: addr, Service: p.check.Load().Service, Listening: at != nil})
	}
	slices.SortFunc(ports, func(a, b PortStatus) int { return a.Address.Compare(b.Address) })
	var problems []Problem
	for _, c := range slices.SortedFunc(maps.Keys(s.reported), compareClaim) {
		problems = append(problems, s.reported[c])
	}
	s.mu.Lock()
	s.status = Status{Applied: s.applied, Ports: ports, Problems: problems}
	s.mu.Unlock()
}
