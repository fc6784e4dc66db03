package hostroute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// Interval is the longest time between two comparisons, and the time between two attempts.
const Interval = 30 * time.Second

// settle is the time in which further changes reported by the kernel belong to the same comparison.
const settle = 200 * time.Millisecond

// Kernel is the routing table of the host, of one address family.
type Kernel interface {
	// Link returns the index of an interface; an interface that is down is an error.
	Link(name string) (int, error)
	// Has reports whether an interface of the host has an address.
	Has(netip.Addr) (bool, error)
	// Routes returns the unicast routes of the main table and of Table.
	Routes() ([]Route, error)
	// Add adds a route; an equal one, or one with the same destination and metric, is an error.
	Add(Route) error
	// Remove removes a route; a missing route is no error.
	Remove(Route) error
	// Rules returns the rules of the agent.
	Rules() ([]Rule, error)
	// AddRule adds a rule before the lookup of the host's own addresses.
	AddRule(Rule) error
	// RemoveRule removes a rule; a missing rule is no error.
	RemoveRule(Rule) error
	// AcceptLocal sets whether the host accepts packets of an interface whose source is an
	// address of the host.
	AcceptLocal(link string, on bool) error
	// Watch calls changed after each change of a route, with its old or new form. After other
	// changes that may matter, for example of interfaces, it calls changed with the zero value.
	// It returns when ctx ends, or with an error when it no longer sees changes.
	Watch(ctx context.Context, changed func(Route)) error
}

// Config describes the wanted routes.
type Config struct {
	// Interface is the name of the host's interface towards VPP.
	Interface string
	// Gateway is the address of VPP at the other end. Networks of the other address family are
	// not routed.
	Gateway netip.Addr
	// NodeSource gives the routes an address of the Node object as source.
	NodeSource bool
	// NodePorts are the ports of the node's own addresses at which the host's processes reach
	// VPP.
	NodePorts Ports
}

// Status is the result of the last comparison.
type Status struct {
	// Kept, Foreign and Failed are numbers of networks: with a route of the agent, with a route
	// of another owner, and without a route.
	Kept, Foreign, Failed int
	// Problem is the reason why the agent does not route some networks; "" = it routes all of
	// them.
	Problem string
}

// Keeper keeps the routes.
type Keeper struct {
	cfg     Config
	kernel  Kernel
	log     *slog.Logger
	changed chan struct{} // holds a token while there is something to compare

	mu       sync.Mutex
	networks []netip.Prefix
	routed   bool // Route was called
	placed   bool // Node was called
	// Addresses of the family of the gateway: of the Node object, and with node ports.
	node, ported []netip.Addr
	status       Status
}

// New returns a keeper that leaves all routes as they are until it knows the networks.
func New(cfg Config, kernel Kernel, log *slog.Logger) *Keeper {
	return &Keeper{cfg: cfg, kernel: kernel, log: log, changed: make(chan struct{}, 1), status: Status{Problem: "the service CIDRs or the Node are not known yet"}}
}

// Route sets the networks, which are the service CIDRs. It does not block.
func (k *Keeper) Route(networks []netip.Prefix) {
	var own []netip.Prefix
	for _, n := range networks {
		if n.Addr().Is4() == k.cfg.Gateway.Is4() {
			own = append(own, n.Masked())
		}
	}
	k.mu.Lock()
	k.networks, k.routed = own, true
	k.mu.Unlock()
	k.look()
}

// look requests a comparison of the routes.
func (k *Keeper) look() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// wanted returns the networks; known is false before the first call of Route.
func (k *Keeper) wanted() (networks []netip.Prefix, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	needsNode := k.cfg.NodeSource || k.cfg.NodePorts != (Ports{})
	return k.networks, k.routed && (k.placed || !needsNode)
}

// Node sets the addresses of the Node object, and the addresses with node ports. It does not block.
func (k *Keeper) Node(addresses, nodePorts []string) {
	node, ported := k.ofFamily(addresses), k.ofFamily(nodePorts)
	k.mu.Lock()
	changed := !k.placed || !slices.Equal(k.node, node) || !slices.Equal(k.ported, ported)
	k.node, k.ported, k.placed = node, ported, true
	k.mu.Unlock()
	if changed {
		k.look()
	}
}

// ofFamily parses the addresses of the family of the gateway.
func (k *Keeper) ofFamily(texts []string) (own []netip.Addr) {
	for _, text := range texts {
		if a, err := netip.ParseAddr(text); err == nil && a.Is4() == k.cfg.Gateway.Is4() {
			own = append(own, a)
		}
	}
	return own
}

// source returns the first address of the Node object that the host has. The zero value leaves the
// source of packets to the kernel; why is the reason where that is not wanted.
func (k *Keeper) source() (source netip.Addr, why string) {
	if !k.cfg.NodeSource {
		return source, ""
	}
	k.mu.Lock()
	node := k.node
	k.mu.Unlock()
	for _, a := range node {
		switch has, err := k.kernel.Has(a); {
		case err != nil:
			return source, err.Error()
		case has:
			return a, ""
		}
	}
	return source, fmt.Sprintf("the routes have no source: the host has no address of the Node object %v", node)
}

// rules are the agent's rules. A kernel without policy routing has none.
func (k *Keeper) rules() ([]Rule, error) {
	rules, err := k.kernel.Rules()
	if err != nil && k.cfg.NodePorts == (Ports{}) {
		return nil, nil
	}
	return rules, err
}

// nodePorts leads packets of the host's processes to node ports at its own addresses to VPP. The
// answers of VPP have an address of the host as source.
func (k *Keeper) nodePorts(link int, routes []Route) error {
	k.mu.Lock()
	ported := k.ported
	k.mu.Unlock()
	var own []netip.Addr
	var networks []netip.Prefix
	for _, a := range ported {
		if has, err := k.kernel.Has(a); err != nil {
			return err
		} else if has && k.cfg.NodePorts != (Ports{}) {
			own, networks = append(own, a), []netip.Prefix{netip.PrefixFrom(a, 0).Masked()}
		}
	}
	have, err := k.rules()
	if err != nil {
		return err
	}
	remove, add := planRules(rulesTo(own, k.cfg.NodePorts), have)
	changes := Plan(networks, Route{Table: Table, Gateway: k.cfg.Gateway, Link: link}, routes)
	for _, r := range remove {
		err = errors.Join(err, k.kernel.RemoveRule(r))
	}
	for _, r := range changes.Remove {
		err = errors.Join(err, k.kernel.Remove(r))
	}
	if len(own)+len(have) > 0 {
		err = errors.Join(err, k.kernel.AcceptLocal(k.cfg.Interface, len(own) > 0))
	}
	for _, r := range changes.Add {
		err = errors.Join(err, k.kernel.Add(r))
	}
	if err == nil { // without the rest, rules would lose packets
		for _, r := range add {
			err = errors.Join(err, k.kernel.AddRule(r))
		}
	}
	return err
}

// Run compares until ctx ends. It never returns an error: failures are in Status and are retried.
func (k *Keeper) Run(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		k.watch(ctx, func(r Route) {
			networks, _ := k.wanted()
			if !r.Prefix.IsValid() || r.Protocol == Protocol || slices.Contains(networks, r.Prefix) {
				// other routes have no effect, and the host may have very many
				k.look()
			}
		})
	}()
	defer func() { <-done }()
	tick := time.NewTicker(Interval)
	defer tick.Stop()
	for {
		k.compare()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-k.changed:
			pause(ctx, settle)
		}
	}
}

// watch receives the changes of the kernel and starts again after an error.
func (k *Keeper) watch(ctx context.Context, changed func(Route)) {
	for ctx.Err() == nil {
		if err := k.kernel.Watch(ctx, changed); err != nil && ctx.Err() == nil {
			k.log.Warn("the kernel does not report changes of routes, comparing at an interval", "error", err, "every", Interval)
		}
		pause(ctx, Interval)
	}
}

// Status returns the result of the last comparison.
func (k *Keeper) Status() Status {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// Remove removes the routes of the agent, also without Run.
func (k *Keeper) Remove(context.Context) error {
	have, err := k.kernel.Routes()
	if err != nil {
		return err
	}
	rules, err := k.rules()
	for _, r := range rules {
		err = errors.Join(err, k.kernel.RemoveRule(r))
	}
	if len(rules) > 0 {
		err = errors.Join(err, k.kernel.AcceptLocal(k.cfg.Interface, false))
	}
	for _, r := range slices.Concat(Plan(nil, Route{}, have).Remove, Plan(nil, Route{Table: Table}, have).Remove) {
		err = errors.Join(err, k.kernel.Remove(r))
	}
	return err
}

// compare gives the kernel the wanted routes and logs changes.
func (k *Keeper) compare() {
	networks, known := k.wanted()
	if !known {
		return
	}
	status := k.reconcile(networks)
	k.mu.Lock()
	before := k.status
	k.status = status
	k.mu.Unlock()
	switch {
	case status == before:
	case status.Problem != "":
		k.log.Warn("host routes of the service CIDR are not complete", "kept", status.Kept, "why", status.Problem)
	default:
		k.log.Info("host routes of the service CIDR are complete", "interface", k.cfg.Interface, "gateway", k.cfg.Gateway.String())
	}
}

func (k *Keeper) reconcile(networks []netip.Prefix) Status {
	none := func(err error) Status { return Status{Failed: len(networks), Problem: err.Error()} }
	link, err := k.kernel.Link(k.cfg.Interface)
	if err != nil {
		return none(err)
	}
	have, err := k.kernel.Routes()
	if err != nil {
		return none(err)
	}
	source, why := k.source()
	changes := Plan(networks, Route{Gateway: k.cfg.Gateway, Link: link, Source: source}, have)
	var problems []string
	if why != "" {
		problems = append(problems, why)
	}
	for _, r := range changes.Remove {
		if err := k.kernel.Remove(r); err != nil {
			problems = append(problems, err.Error())
		}
	}
	status := Status{Foreign: len(changes.Foreign)}
	for _, r := range changes.Foreign {
		problems = append(problems, fmt.Sprintf("%s has a route of another owner (protocol %d)", r.Prefix, r.Protocol))
	}
	for _, r := range changes.Add {
		if err := k.kernel.Add(r); err != nil {
			status.Failed++
			problems = append(problems, err.Error())
		}
	}
	if err := k.nodePorts(link, have); err != nil {
		problems = append(problems, err.Error())
	}
	status.Kept = len(networks) - status.Foreign - status.Failed
	status.Problem = strings.Join(problems, "; ")
	return status
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
