package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/bootstrap/inspect"
	"github.com/troupe-vpp/troupe/bootstrap/metrics"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
)

// askTimeout limits a query that an actor answers from its memory.
const askTimeout = 2 * time.Second

// Agent has the parts of an agent that a Backend needs. Its functions are called from any
// goroutine, also before the actors exist.
type Agent struct {
	// Config is never modified.
	Config *config.Agent
	Log    *slog.Logger
	// System returns the system of the actors; nil before they start.
	System    func() *runtime.System
	Readiness *health.Readiness
	Metrics   *metrics.Metrics
	// Renderers returns the names of the renderers, in the order of the tree; Choice says which
	// of them serves IPv4 and why.
	Renderers func() []string
	Choice    func() string
	// VPP returns the connection to VPP.
	VPP func() link.Caller
	// Eligible reports whether the node may receive new connections.
	Eligible func() bool
	// Parts returns the parts of readiness that no actor reports.
	Parts func() []api.Part
	// Unserved returns why a health-check node port of a service is not served; "" = it is.
	Unserved func(service string) string
	// External reports whether the agent takes external configuration.
	External func() bool
	// Chaos returns live chaos; nil = it is off.
	Chaos func() *live.Live
	// Changes is called before a command that changes VPP.
	Changes func()
}

// Backend answers the HTTP server with queries to actors. It has no state of its own.
type Backend struct {
	inspect.Tree
	agent Agent
}

// New returns the backend of an agent.
func New(a Agent) Backend { return Backend{a.System, a} }

var _ api.Backend = Backend{}

func (b Backend) system() *runtime.System { return b.agent.System() }

// ask is Ask with the time limit askTimeout.
func ask[T any](ctx context.Context, s *runtime.System, path string, question any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return Ask[T](ctx, s, path, question)
}

// Ask sends a query to an actor and expects an answer of one type before the deadline of ctx. The
// error of an actor that does not answer is api.ErrUnavailable.
func Ask[T any](ctx context.Context, s *runtime.System, path string, question any) (T, error) {
	var none T
	answer, err := s.Ask(ctx, path, question)
	if err != nil {
		return none, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	}
	typed, ok := answer.(T)
	if !ok {
		return none, fmt.Errorf("%s answered with %T", path, answer)
	}
	return typed, nil
}

// Live satisfies api.Prober. Supervisors repair all failures except the end of the root actor.
func (b Backend) Live() error {
	if _, ok := b.system().Actor(address.RootName); !ok {
		return errors.New("the root actor is gone")
	}
	return nil
}

// Readiness satisfies api.Prober.
func (b Backend) Readiness() api.Readiness {
	report := b.agent.Readiness.Load()
	out := api.Readiness{Ready: report.Ready, Since: report.Since, Parts: make([]api.Part, len(report.Parts))}
	for i, p := range report.Parts {
		out.Parts[i] = api.Part{Name: p.Name, OK: p.OK, Reason: p.Reason, Epoch: p.Epoch}
		if !p.AsOf.IsZero() {
			out.Parts[i].Reason += fmt.Sprintf(" (what is served is %s old)", time.Since(p.AsOf).Round(time.Second))
		}
	}
	out.Parts = append(out.Parts, b.agent.Parts()...)
	return out
}

// Node satisfies api.Prober.
func (b Backend) Node() api.NodeHealth {
	report, now := b.agent.Readiness.Load(), time.Now()
	health := api.NodeHealth{LastUpdated: now, CurrentTime: now, Eligible: b.agent.Eligible(), Healthy: report.Ready}
	if !report.Ready {
		health.LastUpdated = report.Since
	}
	return health
}

// world queries introspection for its state without the services.
func (b Backend) world(ctx context.Context) (*status.WorldPage, error) {
	return ask[*status.WorldPage](ctx, b.system(), address.Introspect, &status.WorldQuery{})
}

// Interfaces satisfies api.Reader.
func (b Backend) Interfaces(ctx context.Context) (*api.Interfaces, error) {
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	set := world.Interfaces
	if set == nil {
		return nil, fmt.Errorf("%w: the agent has not read the interfaces of VPP yet", api.ErrUnavailable)
	}
	out := &api.Interfaces{NodeAddresses: append([]string{}, set.GetNodeAddresses()...), Items: []api.Interface{}, Unplaced: set.GetUnplaced()}
	for _, i := range set.GetInterfaces() {
		if set.Uplink != nil && set.GetUplink() == i.GetSwIfIndex() {
			out.Uplink = i.GetName()
		}
		out.Items = append(out.Items, api.Interface{
			Index: i.GetSwIfIndex(), Name: i.GetName(), Kind: kindWord(i.GetKind()), Up: i.GetAdminUp() && i.GetLinkUp(),
			Addresses: append([]string{}, i.GetAddresses()...), Pods: append([]string{}, i.GetPods()...), Frontend: i.GetFrontend(), Backend: i.GetBackend(),
			OtherProtocols: i.GetOtherProtocols(),
		})
	}
	return out, nil
}

// kindWord is an interface kind in the API; unknown kinds of later versions are "other".
func kindWord(k messages.InterfaceKind) string {
	switch k {
	case messages.InterfaceKind_INTERFACE_POD:
		return "pod"
	case messages.InterfaceKind_INTERFACE_UPLINK:
		return "uplink"
	case messages.InterfaceKind_INTERFACE_INTERNAL:
		return "internal"
	default:
		return "other"
	}
}

// Events satisfies api.Reader.
func (b Backend) Events(ctx context.Context, query api.EventQuery) (*api.EventPage, error) {
	page, err := ask[*status.EventsPage](ctx, b.system(), address.Journal, &status.EventsQuery{
		Before: query.Before, After: query.After, Limit: query.Limit, Kind: query.Kind, Object: query.Object, Cause: query.Cause,
	})
	if err != nil {
		return nil, err
	}
	out := &api.EventPage{Items: make([]api.Event, len(page.Events)), Next: page.Next}
	for i, e := range page.Events {
		out.Items[i] = api.Event{
			Seq: e.GetSeq(), Time: time.Unix(0, e.GetTime()), Kind: e.GetKind(), Actor: e.GetActor(), Object: e.GetObject(), Text: e.GetText(),
			Cause: e.GetCause(), Method: methodWord(e.GetMethod()), Operations: e.GetOperations(), Executed: e.GetExecuted(), Error: e.GetError(),
		}
	}
	return out, nil
}

// methodWord is the method of a transaction in the API; "" = the event is not a transaction.
func methodWord(m messages.Method) string {
	switch m {
	case messages.Method_METHOD_UPDATE:
		return "update"
	case messages.Method_METHOD_UPSTREAM_RESYNC:
		return "upstream-resync"
	case messages.Method_METHOD_DOWNSTREAM_RESYNC:
		return "downstream-resync"
	case messages.Method_METHOD_FULL_RESYNC:
		return "full-resync"
	default:
		return ""
	}
}

// Resync satisfies api.Reader.
func (b Backend) Resync(ctx context.Context) (*api.Resync, error) {
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	resync := &api.Resync{}
	for _, renderer := range b.agent.Renderers() {
		sync := api.RendererSync{Renderer: renderer}
		for _, p := range b.agent.Readiness.Load().Parts {
			if p.Name == sync.Renderer {
				sync.Epoch, sync.InSync, sync.Reason = p.Epoch, p.OK, p.Reason
			}
		}
		if v := world.Verified[renderer]; v != nil {
			sync.Read, sync.Because, sync.Differences = time.Unix(0, v.GetBegan()), v.GetReason(), v.GetDifferences()
		}
		sync.Repair = repair(world.Repairs[renderer])
		resync.Renderers = append(resync.Renderers, sync)
	}
	return b.healing(ctx, resync)
}

// repair is a reading with differences; nil = there was none.
func repair(v *messages.Verified) *api.Repair {
	if v == nil {
		return nil
	}
	out := &api.Repair{
		Found: time.Unix(0, v.GetBegan()), Because: v.GetReason(), Differences: v.GetDifferences(), Operations: v.GetOperations(),
		First: append([]string{}, v.GetFirst()...),
	}
	if v.GetRepaired() != 0 {
		out.Repaired = time.Unix(0, v.GetRepaired())
	}
	return out
}

// Diff satisfies api.Reader. It reads VPP, so that it may take as long as the request.
func (b Backend) Diff(ctx context.Context) (*api.Diff, error) {
	all := &api.Diff{}
	for _, renderer := range b.agent.Renderers() {
		page, err := Ask[*render.DiffPage](ctx, b.system(), address.Renderer(renderer), &render.DiffQuery{})
		if err != nil {
			return nil, err
		}
		diff := api.RendererDiff{Renderer: renderer, Operations: append([]string{}, page.Operations...)}
		if page.Err != nil {
			diff.Error = page.Err.Error()
		}
		all.Renderers = append(all.Renderers, diff)
	}
	return all, nil
}

// StartResync satisfies api.Controller.
func (b Backend) StartResync(_ context.Context, request api.ResyncRequest) error {
	if request.Method != api.ResyncDownstream {
		b.system().Send(b.system().PID(address.Watch), &messages.Pull{})
	}
	for _, renderer := range b.agent.Renderers() {
		if request.Method != api.ResyncUpstream {
			b.system().Send(b.system().PID(address.Renderer(renderer)), &messages.Verify{Reason: cmp.Or(request.Reason, "requested")})
		}
	}
	return nil
}
