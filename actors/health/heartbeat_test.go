package health

import (
	"slices"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/actorstest/probe"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/desired"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/link"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/render/nat44"
	"github.com/troupe-vpp/troupe/actors/render/routes"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/sessions"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
	rows "github.com/troupe-vpp/troupe/vpp/nat44"
)

// silentFeed never delivers anything.
type silentFeed struct{}

func (silentFeed) Listen(kube.Sink) (leave func()) { return func() {} }

func (silentFeed) Refresh() {}

// TestEveryPartHasAHeartbeat: a part without news repeats its health in time, or the healer would
// restart it.
func TestEveryPartHasAHeartbeat(t *testing.T) {
	for part, make := range map[string]func(s *probe.Stage) func() runtime.Behaviour{
		"link": func(s *probe.Stage) func() runtime.Behaviour {
			config := &link.Config{Link: s.VPP(), Runs: runtime.NewExclusive(s.Sim.Park)}
			return func() runtime.Behaviour { return link.New(config) }
		},
		"interfaces": func(s *probe.Stage) func() runtime.Behaviour {
			config := &interfaces.Config{VPP: s.VPP(), Attachments: &interfaces.MemoryStore{}, Saves: runtime.NewExclusive(s.Sim.Park)}
			return func() runtime.Behaviour { return interfaces.New(config) }
		},
		"nat44": func(s *probe.Stage) func() runtime.Behaviour {
			config := &render.Config{VPP: s.VPP(), Observer: report.None{}, Tick: time.Second, Backoff: time.Second, DriftCheckLeast: time.Hour, DriftCheckMost: time.Hour}
			return func() runtime.Behaviour { return render.New(config, nat44.New(rows.Config{})) }
		},
		"routes": func(s *probe.Stage) func() runtime.Behaviour {
			config := &render.Config{VPP: s.VPP(), Observer: report.None{}, Tick: time.Second, Backoff: time.Second, DriftCheckLeast: time.Hour, DriftCheckMost: time.Hour}
			return func() runtime.Behaviour { return render.New(config, routes.New(routes.Config{})) }
		},
		"sessions": func(s *probe.Stage) func() runtime.Behaviour {
			config := &sessions.Config{VPP: s.VPP()}
			return func() runtime.Behaviour { return sessions.New(config) }
		},
		"external": func(s *probe.Stage) func() runtime.Behaviour {
			config := &external.Config{Runs: runtime.NewExclusive(s.Sim.Park), Renderer: address.Renderer("nat44")}
			return func() runtime.Behaviour { return external.New(config) }
		},
		"registry": func(*probe.Stage) func() runtime.Behaviour {
			return func() runtime.Behaviour {
				return desired.NewRegistry(&desired.Config{Feed: silentFeed{}})
			}
		},
	} {
		t.Run(part, func(t *testing.T) {
			s := probe.New(t)
			s.Start(address.Part(part), probe.Actors{address.Part(part): make(s)})
			s.Run(report.Heartbeat) // the first report
			s.Forget()
			for range 10 {
				s.Run(report.Heartbeat)
				all := probe.All[*messages.Health](s, address.Healer)
				if !slices.ContainsFunc(all, func(h *messages.Health) bool { return h.GetPart() == part }) {
					t.Fatalf("%v within %s", all, report.Heartbeat)
				}
				s.Forget()
			}
		})
	}
}
