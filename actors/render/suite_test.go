package render_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"go.fd.io/govpp/api"
	binapi "go.fd.io/govpp/binapi/cnat"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_neighbor"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/nat44_ed"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/cnat"
	"github.com/troupe-vpp/troupe/actors/render/nat44"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/actors/render/routes"
	"github.com/troupe-vpp/troupe/actors/render/toytest"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	cnatvpp "github.com/troupe-vpp/troupe/vpp/cnat"
	"github.com/troupe-vpp/troupe/vpp/link"
	natvpp "github.com/troupe-vpp/troupe/vpp/nat44"
	routesvpp "github.com/troupe-vpp/troupe/vpp/routes"
	"github.com/troupe-vpp/troupe/vpp/rule"
	"github.com/troupe-vpp/troupe/vpp/simulator"
	"github.com/troupe-vpp/troupe/vpp/virtual"
)

// subject is a renderer that the suite can be run with. All names of objects in the suite are
// addresses 10.0.x.y.
type subject struct {
	kind
	view func(key string, created int64, addresses ...string) *messages.ServiceView
	// incarnation makes the actor; reading is called for each read.
	incarnation func(config *render.Config, reading func(routine bool)) runtime.Behaviour
	// held are the agent's objects that VPP holds.
	held func(vpp *simulator.VPP) (map[string]bool, error)
	// object is the object that a request to VPP is about; the zero value: none.
	object func(vpp *simulator.VPP, req api.Message) netip.Addr
	// remove removes an object past the renderer.
	remove func(vpp *simulator.VPP, addr netip.Addr) error
	// settings says that there are settings besides the objects.
	settings bool
	// owned says that an object has one owner: services do not share it.
	owned bool
	// occupy has another client of VPP take an object, and release give it back; nil where VPP
	// does not say whose an object is.
	occupy, release func(vpp *simulator.VPP, addr netip.Addr) error
}

// kind is what the suite has to know of a renderer.
type kind struct {
	name, noun           string
	givesRoles, external bool
}

func kindOf[K render.Key](r render.Renderer[K]) kind {
	external := r.Mail != nil
	return kind{r.Name, r.Noun, r.Roles, external}
}

// incarnations makes a renderer that counts its reads.
func incarnations[K render.Key, C any](renderer func(C) render.Renderer[K], settings C) func(*render.Config, func(bool)) runtime.Behaviour {
	return func(config *render.Config, reading func(bool)) runtime.Behaviour {
		return render.NewCounted(config, renderer(settings), reading)
	}
}

// subjects are all renderers of the suite. Another one needs its line here, and passes.
func subjects() []subject {
	return []subject{toySubject(), nat44Subject(), cnatSubject(), routesSubject()}
}

func toySubject() subject {
	set := func(vpp *simulator.VPP, addr netip.Addr, m toytest.MAC, add bool) error {
		uplink := interface_types.InterfaceIndex(vpp.Interfaces()["uplink0"])
		_, err := vpp.Exec(toytest.Op{Uplink: uplink, Addr: addr, MAC: m, Add: add}.Request())
		return err
	}
	return subject{
		kind: kindOf(toytest.New(struct{}{})), view: rendertest.Forwarding, incarnation: incarnations(toytest.New, struct{}{}), settings: true, owned: true,
		held: func(vpp *simulator.VPP) (map[string]bool, error) {
			all, err := toytest.Read(context.Background(), virtual.NewReader(vpp))
			held := map[string]bool{}
			for addr, m := range all {
				if toytest.Ours(m) && addr != toytest.Marker {
					held[addr.String()] = true
				}
			}
			return held, err
		},
		object: func(_ *simulator.VPP, req api.Message) (addr netip.Addr) {
			if m, is := req.(*ip_neighbor.IPNeighborAddDel); is {
				addr = netip.AddrFrom4(m.Neighbor.IPAddress.Un.GetIP4())
			}
			return addr
		},
		remove: func(vpp *simulator.VPP, addr netip.Addr) error {
			return set(vpp, addr, toytest.MAC{}, false)
		},
		occupy: func(vpp *simulator.VPP, addr netip.Addr) error {
			return set(vpp, addr, toytest.MAC{2, 1}, true)
		},
		release: func(vpp *simulator.VPP, addr netip.Addr) error {
			return set(vpp, addr, toytest.MAC{}, false)
		},
	}
}

func nat44Subject() subject {
	config := natvpp.Config{Node: probe.Node, Pads: true, TwiceNAT: netip.MustParseAddr("10.1.1.254")}
	frontendOf := func(addr netip.Addr) netip.AddrPort { return netip.AddrPortFrom(addr, 80) }
	return subject{
		kind: kindOf(nat44.New(config)), view: rendertest.Forwarding, incarnation: incarnations(nat44.New, config), settings: true, owned: true,
		held: func(vpp *simulator.VPP) (map[string]bool, error) {
			state, err := natvpp.Read(context.Background(), virtual.NewReader(vpp))
			held := map[string]bool{}
			for k := range state.Rows {
				held[k.Addr.String()] = true
			}
			return held, err
		},
		object: func(_ *simulator.VPP, req api.Message) (addr netip.Addr) {
			switch m := req.(type) {
			case *nat44_ed.Nat44AddDelLbStaticMapping:
				addr = netip.AddrFrom4(m.ExternalAddr)
			case *nat44_ed.Nat44LbStaticMappingAddDelLocal:
				addr = netip.AddrFrom4(m.ExternalAddr)
			}
			return addr
		},
		remove: func(vpp *simulator.VPP, addr netip.Addr) error {
			_, err := vpp.ForeignRemove(frontendOf(addr), 6)
			return err
		},
		occupy: func(vpp *simulator.VPP, addr netip.Addr) error {
			_, err := vpp.ForeignAdd(simulator.ForeignRow{VIP: frontendOf(addr), Proto: 6, Tag: "theirs", Backends: []simulator.Backend{
				{Addr: netip.MustParseAddrPort("10.9.9.1:80"), Weight: 1}, {Addr: netip.MustParseAddrPort("10.9.9.2:80"), Weight: 1},
			}})
			return err
		},
		release: func(vpp *simulator.VPP, addr netip.Addr) error {
			_, err := vpp.ForeignRemove(frontendOf(addr), 6)
			return err
		},
	}
}

func cnatSubject() subject {
	config := cnatvpp.Config{Node: probe.Node, IPv4: true, SNAT: []netip.Addr{netip.MustParseAddr("10.1.1.254")}}
	remove := func(vpp *simulator.VPP, addr netip.Addr) error {
		state, err := cnatvpp.Read(context.Background(), virtual.NewReader(vpp), true, nil, nil)
		if err == nil {
			_, err = vpp.Exec(&binapi.CnatTranslationDel{ID: state.Rows[rule.Key{Addr: addr, Port: 80, Proto: 6}].ID})
		}
		return err
	}
	return subject{
		kind: kindOf(cnat.New(config)), view: rendertest.Forwarding, incarnation: incarnations(cnat.New, config), settings: true, owned: true,
		held: func(vpp *simulator.VPP) (map[string]bool, error) {
			state, err := cnatvpp.Read(context.Background(), virtual.NewReader(vpp), true, nil, nil)
			held := map[string]bool{}
			for k, h := range state.Rows {
				if h.Ours {
					held[k.Addr.String()] = true
				}
			}
			return held, err
		},
		object: func(vpp *simulator.VPP, req api.Message) (addr netip.Addr) {
			switch m := req.(type) {
			case *binapi.CnatTranslationUpdate:
				addr = netip.AddrFrom4(m.Translation.Vip.Addr.Un.GetIP4())
			case *binapi.CnatTranslationDel:
				state, err := cnatvpp.Read(context.Background(), virtual.NewReader(vpp), true, nil, nil)
				for k, held := range state.Rows {
					if err == nil && held.ID == m.ID {
						addr = k.Addr
					}
				}
			}
			return addr
		},
		remove: remove, release: remove,
		occupy: func(vpp *simulator.VPP, addr netip.Addr) error {
			at := func(addr netip.Addr, port uint16) binapi.CnatEndpoint {
				return binapi.CnatEndpoint{Addr: ip_types.NewAddress(addr.AsSlice()), SwIfIndex: ^interface_types.InterfaceIndex(0), Port: port}
			}
			_, err := vpp.Exec(&binapi.CnatTranslationUpdate{Translation: binapi.CnatTranslation{
				Vip: at(addr, 80), IPProto: 6, NPaths: 1, Paths: []binapi.CnatEndpointTuple{{DstEp: at(netip.MustParseAddr("10.9.9.1"), 80)}},
			}})
			return err
		},
	}
}

func routesSubject() subject {
	return subject{
		kind: kindOf(routes.New(routes.Config{})), view: rendertest.Rejecting, incarnation: incarnations(routes.New, routes.Config{}),
		held: func(vpp *simulator.VPP) (map[string]bool, error) {
			state, err := routesvpp.Read(context.Background(), virtual.NewReader(vpp), nil, nil)
			held := map[string]bool{}
			for place := range state.Routes {
				held[place.Prefix.Addr().String()] = true
			}
			return held, err
		},
		object: func(_ *simulator.VPP, req api.Message) (addr netip.Addr) {
			if m, is := req.(*ip.IPRouteAddDelV2); is {
				addr = netip.AddrFrom4(m.Route.Prefix.Address.Un.GetIP4())
			}
			return addr
		},
		remove: func(vpp *simulator.VPP, addr netip.Addr) error {
			state, err := routesvpp.Read(context.Background(), virtual.NewReader(vpp), nil, nil)
			if err != nil {
				return err
			}
			for _, r := range routesvpp.Apply(context.Background(), virtual.NewReader(vpp), routesvpp.Diff(state.Only(netip.PrefixFrom(addr, 32)), nil, true)) {
				err = errors.Join(err, r.Err)
			}
			return err
		},
	}
}

// scene is one renderer on a stage.
type scene struct {
	*rendertest.Stage
	subject
	reads, routine int
}

// each plays with every renderer. Each of the services is a probe.
func each(t *testing.T, play func(s *scene), services ...string) {
	t.Helper()
	if services == nil {
		services = []string{"a/a", "b/b"}
	}
	for _, subject := range subjects() {
		t.Run(subject.name, func(t *testing.T) { subject.play(t, services, play) })
	}
}

func (sub subject) play(t *testing.T, services []string, play func(s *scene)) {
	t.Helper()
	sc := &scene{subject: sub}
	reading := func(routine bool) {
		if sc.reads++; routine {
			sc.routine++
		}
	}
	r := rendertest.Renderer{
		Name: sub.name, View: sub.view, New: func(config *render.Config) runtime.Behaviour { return sub.incarnation(config, reading) },
	}
	rendertest.Play(t, r, services, func(s *rendertest.Stage) {
		sc.Stage = s
		play(sc)
	})
}

// holds are the addresses of the agent's objects in VPP, ordered.
func (s *scene) holds() []string {
	s.Helper()
	held, err := s.held(s.VPP.VPP)
	if err != nil {
		s.Fatal(err)
	}
	var all []string
	for addr := range held {
		all = append(all, addr)
	}
	slices.SortFunc(all, func(a, b string) int { return netip.MustParseAddr(a).Compare(netip.MustParseAddr(b)) })
	return all
}

// expect fails the test where VPP holds other objects.
func (s *scene) expect(when string, addresses ...string) {
	s.Helper()
	if got := s.holds(); !slices.Equal(got, addresses) {
		s.Errorf("%s: VPP holds %q, want %q", when, got, addresses)
	}
}

// cost runs something and returns how often VPP was written to and read meanwhile.
func (s *scene) cost(what func()) (writes, reads int) {
	w, r := s.Writes(), s.reads
	what()
	return s.Writes() - w, s.reads - r
}

// outside does something past the renderer.
func (s *scene) outside(do func(*simulator.VPP, netip.Addr) error, addr string) {
	s.Helper()
	if err := do(s.VPP.VPP, netip.MustParseAddr(addr)); err != nil {
		s.Fatal(err)
	}
}

// refuse makes VPP refuse changes of one object.
func (s *scene) refuse(addr string) (tries *int) {
	tries = new(int)
	s.Refuse = func(req api.Message) error {
		if s.object(s.VPP.VPP, req) != netip.MustParseAddr(addr) {
			return nil
		}
		*tries++
		return &link.RetvalError{Message: req.GetMessageName(), Retval: -1}
	}
	return tries
}
