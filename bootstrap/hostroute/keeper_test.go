package hostroute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// table is a kernel's table that refuses the same requests as the kernel.
type table struct {
	mu      sync.Mutex
	sourced bool // the routes have the node's address as source
	down    bool // the interface is not there
	full    error
	ports   Ports
	rules   []Rule
	accepts bool
	routes  []Route
	writes  int
	changed func(Route)
}

func (f *table) Link(name string) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return 0, fmt.Errorf("interface %s of the host: no such device", name)
	}
	return 7, nil
}

func (f *table) Rules() ([]Rule, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.rules), nil
}

// AddRule satisfies Kernel.
func (f *table) AddRule(r Rule) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
	return nil
}

// RemoveRule satisfies Kernel.
func (f *table) RemoveRule(r Rule) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = slices.DeleteFunc(f.rules, func(o Rule) bool { return o == r })
	return nil
}

// AcceptLocal satisfies Kernel.
func (f *table) AcceptLocal(_ string, on bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepts = on
	return nil
}

// Has satisfies Kernel.
func (f *table) Has(a netip.Addr) (bool, error) { return a == nodeAddress, nil }

func (f *table) Routes() ([]Route, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.routes), nil
}

func (f *table) Add(r Route) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if f.full != nil {
		return f.full
	}
	if slices.ContainsFunc(f.routes, func(o Route) bool { return o.Prefix == r.Prefix && o.Metric == r.Metric }) {
		return errors.New("file exists")
	}
	f.routes = append(f.routes, r)
	return nil
}

func (f *table) Remove(r Route) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	f.routes = slices.DeleteFunc(f.routes, func(o Route) bool { return o == r })
	return nil
}

func (f *table) Watch(ctx context.Context, changed func(Route)) error {
	f.mu.Lock()
	f.changed = changed
	f.mu.Unlock()
	<-ctx.Done()
	return nil
}

// set changes the table as another program does; the kernel reports one changed route, the zero
// value for interfaces.
func (f *table) set(reported Route, change func()) {
	f.mu.Lock()
	change()
	tell := f.changed
	f.mu.Unlock()
	tell(reported)
}

// TestKeeperStarts: routes of the process before stay until the networks are known.
func TestKeeperStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &table{routes: []Route{own(services), own(more)}}
		k := New(Config{Interface: "vpp0", Gateway: vppEnd}, f, slog.New(slog.DiscardHandler))
		done := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(done)
			_ = k.Run(ctx)
		}()
		time.Sleep(2 * Interval)
		if f.writes != 0 || k.Status().Problem != "the service CIDRs or the Node are not known yet" {
			t.Errorf("%d writes, status %+v", f.writes, k.Status())
		}
		k.Route([]netip.Prefix{services})
		time.Sleep(settle)
		synctest.Wait()
		if want := []Route{own(services)}; !slices.Equal(f.routes, want) || k.Status() != (Status{Kept: 1}) {
			t.Errorf("routes %v, want %v; status %+v", f.routes, want, k.Status())
		}
		cancel()
		<-done
	})
}

// keeping runs a keeper of two networks, one of them IPv6, until the test ends.
func keeping(t *testing.T, kernel *table) (k *Keeper, log *bytes.Buffer) {
	log = &bytes.Buffer{}
	k = New(Config{Interface: "vpp0", Gateway: vppEnd, NodeSource: kernel.sourced, NodePorts: kernel.ports}, kernel, slog.New(slog.NewTextHandler(log, nil)))
	k.Route([]netip.Prefix{netip.MustParsePrefix("10.96.0.1/12"), netip.MustParsePrefix("fd00::/108")})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := k.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	time.Sleep(2 * settle) // for the networks, and for the watch that has begun
	synctest.Wait()
	return k, log
}

func TestKeeper(t *testing.T) {
	foreign := Route{Prefix: services, Link: 3, Protocol: 186}
	settled := func() { time.Sleep(settle); synctest.Wait() }
	check := func(t *testing.T, k *Keeper, want Status, f *table, routes ...Route) {
		t.Helper()
		if got := k.Status(); got != want {
			t.Errorf("status %+v, want %+v", got, want)
		}
		if have, _ := f.Routes(); !slices.Equal(have, routes) {
			t.Errorf("routes %v, want %v", have, routes)
		}
	}
	for name, story := range map[string]func(t *testing.T, f *table){
		"removed by another program": func(t *testing.T, f *table) {
			k, log := keeping(t, f)
			check(t, k, Status{Kept: 1}, f, own(services))
			f.set(own(services), func() { f.routes = nil })
			settled()
			check(t, k, Status{Kept: 1}, f, own(services))
			if f.writes != 2 || strings.Count(log.String(), "\n") != 1 {
				t.Errorf("%d writes, log %q: want 2 writes and one line", f.writes, log)
			}
		},
		"a route of another owner comes and goes": func(t *testing.T, f *table) {
			k, log := keeping(t, f)
			f.set(foreign, func() { f.routes = append(f.routes, foreign) })
			settled()
			check(t, k, Status{Foreign: 1, Problem: "10.96.0.0/12 has a route of another owner (protocol 186)"}, f, foreign)
			f.set(foreign, func() { f.routes = nil })
			settled()
			check(t, k, Status{Kept: 1}, f, own(services))
			if lines := strings.Count(log.String(), "\n"); lines != 3 {
				t.Errorf("%d lines, want one for each change:\n%s", lines, log)
			}
		},
		"no interface, then it comes": func(t *testing.T, f *table) {
			f.down = true
			k, _ := keeping(t, f)
			check(t, k, Status{Failed: 1, Problem: "interface vpp0 of the host: no such device"}, f)
			f.set(Route{}, func() { f.down = false })
			settled()
			check(t, k, Status{Kept: 1}, f, own(services))
		},
		"refused, tried again without a report": func(t *testing.T, f *table) {
			f.full = errors.New("operation not permitted")
			k, _ := keeping(t, f)
			check(t, k, Status{Failed: 1, Problem: "operation not permitted"}, f)
			f.mu.Lock()
			f.full = nil
			f.mu.Unlock()
			time.Sleep(Interval)
			synctest.Wait()
			check(t, k, Status{Kept: 1}, f, own(services))
		},
		"routes of others do not matter": func(t *testing.T, f *table) {
			k, _ := keeping(t, f)
			// what is reported does not concern the agent
			f.set(Route{Prefix: more, Protocol: 186}, func() { f.routes = nil })
			settled()
			check(t, k, Status{Kept: 1}, f)
		},
		"another network, then none": func(t *testing.T, f *table) {
			k, _ := keeping(t, f)
			k.Route([]netip.Prefix{more})
			settled()
			check(t, k, Status{Kept: 1}, f, own(more))
			k.Route(nil)
			settled()
			check(t, k, Status{}, f)
		},
		"an address of the node as source": func(t *testing.T, f *table) {
			f.sourced = true
			k, _ := keeping(t, f)
			k.Node([]string{"192.168.0.9", "fd00::2"}, nil)
			settled()
			check(t, k, Status{Kept: 1, Problem: "the routes have no source: the host has no address of the Node object [192.168.0.9]"}, f, own(services))
			k.Node([]string{"192.168.0.9", nodeAddress.String()}, nil)
			settled()
			with := own(services)
			with.Source = nodeAddress
			check(t, k, Status{Kept: 1}, f, with)
		},
		"routes of an earlier run wait for the Node": func(t *testing.T, f *table) {
			with := own(services)
			with.Source = nodeAddress
			f.sourced, f.routes = true, []Route{with}
			k, _ := keeping(t, f)
			check(t, k, Status{Problem: "the service CIDRs or the Node are not known yet"}, f, with)
			k.Node([]string{nodeAddress.String()}, nil)
			settled()
			if check(t, k, Status{Kept: 1}, f, with); f.writes > 0 {
				t.Errorf("%d writes", f.writes)
			}
		},
		"node ports at the node's own addresses": func(t *testing.T, f *table) {
			f.ports, f.full = Ports{30000, 32767}, errors.New("operation not permitted")
			k, _ := keeping(t, f)
			k.Node(nil, []string{"192.168.0.9", nodeAddress.String()})
			settled()
			if len(f.rules) > 0 {
				t.Errorf("rules without a route: %v", f.rules)
			}
			f.set(Route{}, func() { f.full = nil })
			settled()
			out := Route{Table: Table, Prefix: netip.MustParsePrefix("0.0.0.0/0"), Gateway: vppEnd, Link: 7, Protocol: Protocol}
			check(t, k, Status{Kept: 1}, f, own(services), out)
			rules := rulesTo([]netip.Addr{nodeAddress}, f.ports)
			if !slices.Equal(f.rules, rules) || !f.accepts {
				t.Errorf("rules %v, accepts %v", f.rules, f.accepts)
			}
			f.set(Route{}, func() { f.rules[0].Late = true })
			settled()
			if len(f.rules) != 2 || slices.ContainsFunc(f.rules, func(r Rule) bool { return r.Late }) {
				t.Errorf("a rule that has no effect: %v", f.rules)
			}
			if err := k.Remove(t.Context()); err != nil || len(f.rules)+len(f.routes) > 0 || f.accepts {
				t.Errorf("%v: rules %v, routes %v, accepts %v", err, f.rules, f.routes, f.accepts)
			}
		},
		"removed at the end": func(t *testing.T, f *table) {
			k, _ := keeping(t, f)
			f.set(Route{}, func() { f.routes = append(f.routes, Route{Prefix: more, Protocol: 186}) })
			if err := k.Remove(t.Context()); err != nil {
				t.Error(err)
			}
			check(t, k, Status{Kept: 1}, f, Route{Prefix: more, Protocol: 186})
		},
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { story(t, &table{}) }) })
	}
}
