package nat44_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/render/rendertest"
	"github.com/troupe-vpp/troupe/messages"
	layers "github.com/troupe-vpp/troupe/vpp/external"
)

// layer decodes the rest of a document.
func (s scene) layer(source, rest string) *layers.Layer {
	s.Helper()
	l, err := layers.Decode([]byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", `+rest+`}`), source)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// mapped is the rest of a document with one static mapping of a port.
func mapped(external, to string) string {
	return `"staticMappings": [{"external": "` + external + `", "to": ["` + to + `"]}]`
}

// wants is what external configuration wants, as its actor would send it.
func wants(generation uint64, complete bool, all ...*layers.Layer) *external.Wants {
	return &external.Wants{Generation: generation, Complete: complete, Merged: layers.Merge(all)}
}

// status is the last status that the renderer has sent.
func (s scene) status() *external.Status {
	return probe.Latest[*external.Status](s, address.External)
}

// entry is the state of an entry.
func (s scene) entry(name string) external.State { return s.status().Entries[name] }

// TestExternalMappings: they come, change their backend and go, and the status says so.
func TestExternalMappings(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1)
		s.Tell(wants(1, true, s.layer("file", mapped("203.0.113.9:443/TCP", "10.1.1.2:8443"))))
		s.expect("it comes", "203.0.113.9:443/6")
		if st := s.status(); st.Generation != 1 || !st.Settled || s.entry("203.0.113.9:443/TCP").State != external.InSync {
			t.Errorf("status %+v", st)
		}
		s.Tell(wants(2, true, s.layer("file", mapped("203.0.113.9:443/TCP", "10.1.1.3:8443"))))
		if rows := probe.Rows(s.VPP.VPP); len(rows) != 1 || !strings.Contains(rows[0], "10.1.1.3") || s.status().Generation != 2 {
			t.Errorf("VPP holds %q, status %+v", rows, s.status())
		}
		s.Forget()
		s.Tell(wants(1, true))
		s.expect("an older generation", "203.0.113.9:443/6")
		s.Tell(wants(2, true))
		s.expect("the same generation again", "203.0.113.9:443/6")
		s.Tell(wants(3, true))
		s.expect("it goes")
		if st := s.status(); st.Generation != 3 || !st.Settled || len(st.Entries) != 0 {
			t.Errorf("status %+v", st)
		}
	})
}

// TestServicesComeBeforeExternalMappings: a service is older than every source. Access to the row
// moves without a gap.
func TestServicesComeBeforeExternalMappings(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		s.Tell(wants(1, true, s.layer("file", mapped("10.0.0.1:80/TCP", "10.1.1.3:8080"))))
		s.Serve("a/a", 1, "10.0.0.1")
		s.Run(time.Millisecond)
		if st := s.entry("10.0.0.1:80/TCP"); st.State != external.Refused || st.Owner != "a/a" || len(s.Ack("a/a").GetConflicts()) != 0 {
			t.Errorf("%+v, a/a was acknowledged %v", st, s.Ack("a/a"))
		}
		s.settled("the service has it", "a/a")
		s.Serve("a/a", 2)
		if st := s.entry("10.0.0.1:80/TCP"); st.State != external.InSync || s.State("a/a") != rendertest.Retired {
			t.Errorf("%+v, a/a was acknowledged %v", st, s.Ack("a/a"))
		}
		s.expect("the service is gone", "10.0.0.1:80/6")
		moves := s.writes(func() {
			s.Tell(wants(2, true, s.layer("etcd:x", mapped("10.0.0.1:80/TCP", "10.1.1.3:8080"))))
		})
		s.expect("another source has it", "10.0.0.1:80/6")
		if moves != 0 || s.entry("10.0.0.1:80/TCP").State != external.InSync {
			t.Errorf("%d writes, %+v", moves, s.status())
		}
	})
}

// TestExternalRowsOfAnEarlierRunWait: until every source has been read, although the barrier has
// been passed.
func TestExternalRowsOfAnEarlierRunWait(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		both := `"staticMappings": [{"external": "203.0.113.9:443/TCP", "to": ["10.1.1.2:8443"]}, {"external": "203.0.113.9:444/TCP", "to": ["10.1.1.2:8443"]}]`
		s.Tell(wants(1, true, s.layer("file", both)))
		s.Kill()
		s.Connected()
		s.Found(2)
		s.Begin(1, "a/a")
		s.Serve("a/a", 1, "10.0.0.1")
		s.expect("nothing is known of external configuration", "10.0.0.1:80/6", "203.0.113.9:443/6", "203.0.113.9:444/6")
		if !s.Health().GetOk() {
			t.Errorf("health %v", s.Health())
		}
		s.Tell(wants(2, false, s.layer("file", mapped("203.0.113.9:443/TCP", "10.1.1.2:8443"))))
		s.expect("not every source has been read", "10.0.0.1:80/6", "203.0.113.9:443/6", "203.0.113.9:444/6")
		s.Tell(wants(3, true, s.layer("file", mapped("203.0.113.9:443/TCP", "10.1.1.2:8443"))))
		s.expect("every source has been read", "10.0.0.1:80/6", "203.0.113.9:443/6")
		if !s.status().Settled {
			t.Errorf("status %+v", s.status())
		}
	})
}

// TestExternalMappingOfAnEndpointInUse: when a mapping goes, its row stays for the connections of a
// service to the endpoint, without new ones. The status says that the mapping has gone when VPP has
// answered, not before. A restart of the agent changes nothing of this.
func TestExternalMappingOfAnEndpointInUse(t *testing.T) {
	mapping := mapped("203.0.113.9:443/TCP", "10.1.1.3:8080")
	for name, goes := range map[string]func(s scene){
		"at once":                 func(scene) {},
		"with an agent restarted": func(s scene) { s.restarted(2, "a/a"); s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.3")) },
	} {
		t.Run(name, func(t *testing.T) {
			withRenderer(t, func(s scene) {
				s.Begin(1, "a/a")
				s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.3"))
				s.Tell(wants(1, true, s.layer("file", mapping)))
				s.expect("both are there", "10.96.0.1:80/6", "203.0.113.9:443/6")
				goes(s)
				s.Forget()
				s.Tell(wants(2, true))
				s.expect("it has gone", "10.96.0.1:80/6")
				if all := probe.All[*external.Status](s, address.External); len(all) != 2 || all[0].Settled || !all[1].Settled {
					t.Errorf("%d statuses, first %+v, last %+v", len(all), all[0], all[len(all)-1])
				}
			})
		})
	}
}

// TestExternalMappingNamesAnEndpoint: the row of a deleted service keeps an endpoint for a mapping,
// also without a connection, and a restart of the agent changes nothing of this.
func TestExternalMappingNamesAnEndpoint(t *testing.T) {
	withRenderer(t, func(s scene) {
		mapping := wants(1, true, s.layer("file", mapped("203.0.113.9:443/TCP", "10.1.1.3:8080")))
		s.Begin(1, "a/a")
		s.Render(1, served("a/a", "10.96.0.1", tcp, "10.1.1.3"))
		s.Tell(mapping)
		s.Tell(&messages.Render{Key: "a/a", Generation: 2})
		s.noSessions("10.1.1.3:8080")
		if got := s.reached("10.96.0.1", tcp); len(got) > 0 || len(s.VPP.VPP.Rows()) != 2 {
			t.Errorf("new connections reach %v, VPP holds %q", got, s.VPP.VPP.Rows())
		}
		writes := s.writes(func() {
			s.Kill()
			s.Tell(mapping) // the renderer asks for it when it starts
			s.Connected()
			s.Found(2)
			s.Begin(2)
			s.noSessions("10.1.1.3:8080")
		})
		if writes != 0 {
			t.Errorf("the restart cost %d writes: VPP holds %q", writes, s.VPP.VPP.Rows())
		}
		s.Tell(wants(2, true))
		s.noSessions("10.1.1.3:8080")
		if rows := s.VPP.VPP.Rows(); len(rows) > 0 {
			t.Errorf("without the mapping VPP holds %q", rows)
		}
	})
}

// TestExternalAddressesAndRoles: they come and go, a role that services need stays, and one of an
// interface that VPP does not have is a failure.
func TestExternalAddressesAndRoles(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1)
		doc := `"natAddresses": ["192.168.16.77"], "interfaces": [{"name": "pod3", "role": "nat"}, {"name": "pod2", "role": "none"}, {"name": "absent", "role": "nat"}]`
		set := s.Interfaces(2, "uplink0", "pod2", "pod3")
		set.Interfaces[2].Frontend = false
		s.Tell(set, wants(1, true, s.layer("file", doc)))
		states := map[string]string{
			"address 192.168.16.77": external.InSync, "interface pod3": external.InSync, "interface pod2": external.Refused, "interface absent": external.Failed,
		}
		for name, want := range states {
			if got := s.entry(name); got.State != want {
				t.Errorf("%s is %+v, want %s", name, got, want)
			}
		}
		if state := s.VPP.VPP.State(); !strings.Contains(state, "pod3 in out") || !strings.Contains(state, "pod2 in out") || !strings.Contains(state, "192.168.16.77") {
			t.Errorf("VPP:\n%s", state)
		}
		gone := wants(2, true)
		gone.Retired = external.Retired{}.With([]netip.Addr{netip.MustParseAddr("192.168.16.77")}, map[string]layers.Role{"pod3": layers.RoleNAT})
		s.Tell(gone)
		if state := s.VPP.VPP.State(); strings.Contains(state, "pod3 in out") || !strings.Contains(state, "pod2 in out") || strings.Contains(state, "192.168.16.77") {
			t.Errorf("VPP:\n%s", state)
		}
		if !s.status().Settled || !s.Health().GetOk() {
			t.Errorf("status %+v, %v", s.status(), s.Health())
		}
	})
}

// TestRefusedExternalMappings: what stands in the way may be about to go, so the first refusals
// count as pending.
func TestRefusedExternalMappings(t *testing.T) {
	withRenderer(t, func(s scene) {
		s.Begin(1)
		s.RefuseAfter(0, errNo)
		s.Tell(wants(1, true, s.layer("file", mapped("203.0.113.9:443/TCP", "10.1.1.2:8443"))))
		name := "203.0.113.9:443/TCP"
		if st := s.entry(name); st.State != external.Pending || st.Why == "" || s.status().Settled {
			t.Errorf("%+v", s.status())
		}
		s.Run(time.Minute)
		if st := s.entry(name); st.State != external.Failed || !s.status().Settled {
			t.Errorf("%+v", s.status())
		}
		s.Refuse = nil
		s.Run(2 * time.Second)
		if st := s.entry(name); st.State != external.InSync {
			t.Errorf("%+v", s.status())
		}
		s.VPP.Disconnect("connection lost")
		s.Connected()
		s.Tell(&messages.Verify{Reason: "test"})
		s.Tell(wants(2, true, s.layer("file", mapped("203.0.113.9:443/TCP", "10.1.1.2:8443"))))
		if st := s.entry(name); st.State != external.Pending || !strings.Contains(st.Why, "not known") {
			t.Errorf("%+v", s.status())
		}
	})
}
