package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/actors/interfaces"
	"github.com/troupe-vpp/troupe/actors/render"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/actors/status"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

// askTimeout limits a query that an actor answers from its memory.
const askTimeout = 2 * time.Second

// backend answers the HTTP server with queries to the actors of its agent, before they exist with
// errors. It has no state of its own.
type backend struct {
	server.Tree
	agent *Agent
}

var _ api.Backend = backend{}

// ask is askUntil with the time limit askTimeout.
func ask[T any](ctx context.Context, s *runtime.System, path string, question any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return askUntil[T](ctx, s, path, question)
}

// askUntil sends a query to an actor and expects an answer of one type before the deadline of ctx.
// The error of an actor that does not answer is api.ErrUnavailable.
func askUntil[T any](ctx context.Context, s *runtime.System, path string, question any) (T, error) {
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
func (b backend) Live() error {
	if _, ok := b.agent.system.Actor(address.RootName); !ok {
		return errors.New("the root actor is gone")
	}
	return nil
}

func (b backend) Readiness() api.Readiness {
	report := b.agent.readiness.Load()
	out := api.Readiness{Ready: report.Ready, Since: report.Since, Parts: make([]api.Part, len(report.Parts))}
	for i, p := range report.Parts {
		out.Parts[i] = api.Part{Name: p.Name, OK: p.OK, Reason: p.Reason, Epoch: p.Epoch}
		if !p.AsOf.IsZero() {
			out.Parts[i].Reason += fmt.Sprintf(" (what is served is %s old)", time.Since(p.AsOf).Round(time.Second))
		}
	}
	out.Parts = append(out.Parts, b.agent.parts()...)
	return out
}

// world queries introspection for its state without the services.
func (b backend) world(ctx context.Context) (*status.WorldPage, error) {
	return ask[*status.WorldPage](ctx, b.agent.system, address.Introspect, &status.WorldQuery{})
}

func (b backend) Interfaces(ctx context.Context) (*api.Interfaces, error) {
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	set := world.Interfaces
	if set == nil {
		return nil, fmt.Errorf("%w: the agent has not read the interfaces of VPP yet", api.ErrUnavailable)
	}
	out := &api.Interfaces{NodeAddresses: append([]string{}, set.GetNodeAddresses()...), Page: api.Page[api.Interface]{Items: []api.Interface{}}, Unplaced: set.GetUnplaced()}
	for _, i := range set.GetInterfaces() {
		if set.Uplink != nil && set.GetUplink() == i.GetSwIfIndex() {
			out.Uplink = i.GetName()
		}
		out.Items = append(out.Items, api.Interface{
			Index: i.GetSwIfIndex(), Name: i.GetName(), Kind: service.Word(i.GetKind()), Up: i.GetAdminUp() && i.GetLinkUp(),
			Addresses: append([]string{}, i.GetAddresses()...), Pods: append([]string{}, i.GetPods()...), Frontend: i.GetFrontend(), Backend: i.GetBackend(),
			OtherProtocols: i.GetOtherProtocols(),
		})
	}
	return out, nil
}

func (b backend) Events(ctx context.Context, query api.EventQuery) (*api.EventPage, error) {
	page, err := ask[*status.EventsPage](ctx, b.agent.system, address.Journal, &status.EventsQuery{
		Before: query.Before, After: query.After, Limit: query.Limit, Kind: query.Kind, Object: query.Object, Cause: query.Cause,
	})
	if err != nil {
		return nil, err
	}
	out := &api.EventPage{Items: make([]api.Event, len(page.Events)), Next: page.Next}
	for i, e := range page.Events {
		out.Items[i] = api.Event{
			Seq: e.GetSeq(), Time: time.Unix(0, e.GetTime()), Kind: e.GetKind(), Actor: e.GetActor(), Object: e.GetObject(), Text: e.GetText(),
			Cause: e.GetCause(), Operations: e.GetOperations(), Executed: e.GetExecuted(), Error: e.GetError(),
		}
		if e.GetMethod() != messages.Method_METHOD_NONE {
			out.Items[i].Method = service.Word(e.GetMethod())
		}
	}
	return out, nil
}

func (b backend) Resync(ctx context.Context) (*api.Resync, error) {
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	resync := &api.Resync{}
	for _, renderer := range b.agent.renderers() {
		sync := api.RendererSync{Renderer: renderer}
		for _, p := range b.agent.readiness.Load().Parts {
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
func (b backend) Diff(ctx context.Context) (*api.Diff, error) {
	all := &api.Diff{}
	for _, renderer := range b.agent.renderers() {
		page, err := askUntil[*render.DiffPage](ctx, b.agent.system, address.Renderer(renderer), &render.DiffQuery{})
		if err != nil {
			return nil, err
		}
		diff := api.RendererDiff{
			Renderer: renderer, Operations: append([]string{}, page.Operations...), Objects: append([]string{}, page.Objects...), Missing: append([]string{}, page.Missing...),
		}
		if page.Err != nil {
			diff.Error = page.Err.Error()
		}
		all.Renderers = append(all.Renderers, diff)
	}
	return all, nil
}

func (b backend) StartResync(_ context.Context, request api.ResyncRequest) error {
	if request.Method != api.ResyncDownstream {
		b.agent.system.Send(b.agent.system.PID(address.Registry), &messages.Pull{})
	}
	for _, renderer := range b.agent.renderers() {
		if request.Method != api.ResyncUpstream {
			b.agent.system.Send(b.agent.system.PID(address.Renderer(renderer)), &messages.Verify{Reason: cmp.Or(request.Reason, "requested")})
		}
	}
	return nil
}

// healing adds the repairs and the unhealthy parts.
func (b backend) healing(ctx context.Context, to *api.Resync) (*api.Resync, error) {
	page, err := ask[*health.Page](ctx, b.agent.system, address.Healer, &health.Query{})
	if err != nil {
		return nil, err
	}
	to.Healing, to.Ill = []api.HealingCount{}, make([]api.IllPart, len(page.Cases))
	for part, counts := range page.Counts {
		for step, n := range counts {
			to.Healing = append(to.Healing, api.HealingCount{Part: part, Rung: step, Count: n})
		}
	}
	slices.SortFunc(to.Healing, func(a, b api.HealingCount) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), cmp.Compare(a.Rung, b.Rung))
	})
	for i, c := range page.Cases {
		to.Ill[i] = api.IllPart{Part: c.Part, Reason: c.Reason, Since: c.Since, Next: c.Until, Rung: c.Step}
	}
	return to, nil
}

// drainPatience limits the wait of a status for the number of draining endpoints, which only the
// renderer knows.
const drainPatience = 200 * time.Millisecond

func (b backend) Status(ctx context.Context) (*api.NodeStatus, error) {
	services, err := b.Services(ctx)
	if err != nil {
		return nil, err
	}
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	s := api.StatusOf(b.agent.cfg.NodeName, api.ReadBuild().String(), b.Readiness(), services)
	if world.Link.GetUp() {
		s.VPP, s.Started = world.Link.GetVersion(), link.Started(world.Link.GetBoot())
	}
	if l := world.Link; l.GetBack() != 0 {
		s.Restart = &api.Restart{Lost: time.Unix(0, l.GetLost()), Back: time.Unix(0, l.GetBack()), Filled: b.filled(world)}
	}
	if all, err := b.Addresses(ctx); err == nil {
		for _, one := range all.Items {
			if one.State == api.Owner {
				s.Addresses = append(s.Addresses, one.Address)
			}
		}
	}
	if sessions, err := b.Sessions(ctx); err == nil {
		s.Sessions = sessions.BusiestWorker
	}
	ctx, cancel := context.WithTimeout(ctx, drainPatience)
	defer cancel()
	var renderer struct {
		Draining int `json:"draining"`
	}
	if state, err := b.State(ctx, address.Renderer("nat44")); err == nil && json.Unmarshal(state, &renderer) == nil {
		s.Draining = renderer.Draining
	}
	return s, nil
}

// filled is when every renderer had repaired the VPP that is connected; zero = not yet, or unknown.
func (b backend) filled(world *status.WorldPage) time.Time {
	var last int64
	for _, renderer := range b.agent.renderers() {
		at := world.Filled[renderer]
		if at == 0 {
			return time.Time{}
		}
		last = max(last, at)
	}
	return time.Unix(0, last)
}

// Nodes satisfies api.Reader: the nodes of the store, or the nodes of Kubernetes without a store.
func (b backend) Nodes(ctx context.Context) (*api.Nodes, error) {
	world, err := b.world(ctx)
	if err != nil {
		return nil, err
	}
	services, err := ask[*status.ServicesPage](ctx, b.agent.system, address.Introspect, &status.ServicesQuery{})
	if err != nil {
		return nil, err
	}
	out := &api.Nodes{Self: b.agent.cfg.NodeName, Claim: "none", Renderer: b.agent.choiceText(), Page: api.Page[api.Node]{Items: []api.Node{}}, Approximations: approximations(services.Services)}
	if cluster := world.Cluster; cluster != nil {
		out.Claim, out.Reason, out.Connected = service.Word(cluster.GetClaim()), cluster.GetReason(), cluster.GetConnected()
		for _, name := range slices.Sorted(maps.Keys(cluster.GetNodes())) {
			n := cluster.GetNodes()[name]
			id := n.GetId()
			if name == cluster.GetSelf() {
				// from an earlier process; unconfirmed until the claim is held
				id = cmp.Or(id, cluster.GetId())
			}
			out.Items = append(out.Items, api.Node{
				Name: name, ID: id, VPPAddresses: append([]string{}, n.GetVppAddresses()...), ManagementAddresses: append([]string{}, n.GetManagementAddresses()...),
				PodCIDRs: append([]string{}, n.GetPodCidrs()...),
			})
		}
		return out, nil
	}
	for _, name := range slices.Sorted(maps.Keys(world.Node.GetNodes())) {
		n := world.Node.GetNodes()[name]
		out.Items = append(out.Items, api.Node{
			Name: name, VPPAddresses: []string{}, ManagementAddresses: append([]string{}, n.GetAddresses()...), PodCIDRs: append([]string{}, n.GetPodCidrs()...),
		})
	}
	return out, nil
}

// Sessions satisfies api.Reader. It returns the latest observation of the agent, so that clients
// cost VPP nothing.
func (b backend) Sessions(context.Context) (*api.Sessions, error) {
	table := b.agent.metrics.LastSessions()
	if table == nil {
		return nil, fmt.Errorf("%w: the agent has not read the NAT sessions of VPP yet", api.ErrUnavailable)
	}
	out := &api.Sessions{Time: table.At, BusiestWorker: table.Usage.Busiest, Limit: table.Limit, Alarm: table.Alarm, Protocols: []api.ProtocolSessions{}}
	for p := range sessions.Protocols {
		if !table.Survey.Known {
			break
		}
		count := table.Survey.By[p]
		out.Protocols = append(out.Protocols, api.ProtocolSessions{Protocol: p.String(), Sessions: count.Sessions, Expired: count.Expired})
	}
	return out, nil
}

// errNoExternal is the answer if CNAT serves both families.
var errNoExternal = fmt.Errorf("external configuration is %w: it needs NAT44 (--renderer dual or nat44)", api.ErrUnsupported)

// takesExternal reports whether the agent takes external configuration.
func (a *Agent) takesExternal() bool {
	return a.outside != nil && a.rendering().Renderer != config.RendererCNAT
}

func (b backend) External(ctx context.Context) (*api.External, error) {
	if !b.agent.takesExternal() {
		return nil, errNoExternal
	}
	page, err := ask[*external.Page](ctx, b.agent.system, address.External, &external.Query{})
	if err != nil {
		return nil, err
	}
	out := &api.External{Complete: page.Complete, Layers: []api.ExternalLayer{}, Page: api.Page[api.ExternalEntry]{Items: []api.ExternalEntry{}}}
	for _, l := range page.Layers {
		out.Layers = append(out.Layers, api.ExternalLayer{
			Source: l.Source, Priority: l.Priority, Entries: l.Entries, Document: l.Document, Since: l.Since, Error: l.Problem,
		})
	}
	for _, e := range page.Entries {
		out.Items = append(out.Items, api.ExternalEntry(e))
	}
	return out, nil
}

// ApplyExternal satisfies api.Controller. The deadline of the command is shorter than the deadline
// of the request, so that the client gets its error.
func (b backend) ApplyExternal(ctx context.Context, source string, document []byte) (*api.ExternalResult, error) {
	if !b.agent.takesExternal() {
		return nil, errNoExternal
	}
	b.agent.stage.countChanges(1)
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := askUntil[*command.Result](ctx, b.agent.system, address.External, &external.Apply{Source: source, Document: document})
	if err != nil {
		return nil, err
	}
	if result.Err == nil {
		return &api.ExternalResult{Source: source, Cause: result.Cause}, nil
	}
	if errors.Is(result.Err, layers.ErrInvalid) {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, result.Err)
	}
	return nil, commandError("external configuration "+source, result.Err)
}

// commandTimeout limits a command if the caller has no earlier deadline. The actor answers earlier,
// unless it hangs.
const commandTimeout = 10 * time.Second

// AttachPod satisfies api.Controller. The deadline of the command is shorter than the deadline of
// the request, so that the client gets the error of the interfaces actor.
func (b backend) AttachPod(ctx context.Context, pod, name string) (*api.PodInterface, error) {
	b.agent.stage.countChanges(1)
	var question any = &interfaces.Attach{Pod: pod, Interface: name}
	if name == "" {
		question = &interfaces.Detach{Pod: pod}
	}
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	result, err := askUntil[*command.Result](ctx, b.agent.system, address.Interfaces, question)
	if err != nil {
		return nil, err
	}
	if result.Err == nil {
		return &api.PodInterface{Pod: pod, Interface: name, Cause: result.Cause}, nil
	}
	return nil, commandError("pod "+pod, result.Err)
}

// commandError gives the error of a command its status in the API.
func commandError(object string, err error) error {
	means := map[error]error{command.ErrState: api.ErrConflict, command.ErrAway: api.ErrUnavailable, command.ErrTooLate: context.DeadlineExceeded}
	meant := means[command.Meaning(err)]
	err = fmt.Errorf("%s: %w", object, err)
	if meant != nil {
		return fmt.Errorf("%w: %w", meant, err)
	}
	return err
}

// Limits of a reading of sessions. For each backend VPP stops its workers and passes over all
// sessions of a worker.
const (
	mostDumps    = 8
	mostSessions = 100_000
)

// ServiceSessions satisfies api.Reader. It returns sessions of NAT44 only, because VPP lists the
// sessions of CNAT of all services at once.
func (b backend) ServiceSessions(ctx context.Context, key string) (*api.ServiceSessions, error) {
	service, err := b.Service(ctx, key)
	if err != nil {
		return nil, err
	}
	out := &api.ServiceSessions{Time: time.Now(), Items: []api.Session{}}
	vips, backends := map[string]bool{}, []netip.Addr{}
	for _, row := range service.InVPP {
		if row.Renderer != config.RendererNAT44 {
			out.Incomplete = "VPP lists the sessions of CNAT only all at once"
			continue
		}
		vips[row.VIP] = true
		for _, l := range row.Locals {
			if a, err := netip.ParseAddrPort(l.Address); err == nil {
				backends = append(backends, a.Addr())
			}
		}
	}
	slices.SortFunc(backends, netip.Addr.Compare)
	backends = slices.Compact(backends)
	if table := b.agent.metrics.LastSessions(); table != nil && table.Usage.Total > mostSessions {
		return nil, fmt.Errorf("%w: VPP has %d sessions, and would stop its workers for too long to look through them", api.ErrUnavailable, table.Usage.Total)
	}
	if len(backends) > mostDumps {
		out.Incomplete = fmt.Sprintf("VPP was asked about %d of %d backends", mostDumps, len(backends))
		backends = backends[:mostDumps]
	}
	wanted := func(f *sessions.Flow) bool { return vips[f.Frontend.String()+"/"+protocolWord(f.Protocol)] }
	flows, more, err := sessions.List(ctx, b.agent.vpp, backends, wanted, api.MaxLimit)
	switch {
	case errors.Is(err, link.ErrDown):
		return nil, fmt.Errorf("%w: %w", api.ErrUnavailable, err)
	case err != nil:
		return nil, err
	case more:
		out.Incomplete = fmt.Sprintf("there are more than %d", api.MaxLimit)
	}
	slices.SortStableFunc(flows, func(x, y sessions.Flow) int { return cmp.Compare(x.Idle, y.Idle) })
	for _, f := range flows {
		s := api.Session{
			Protocol: protocolWord(f.Protocol), Client: f.Client.String(), Frontend: f.Frontend.String(), Backend: f.Backend.String(),
			IdleSeconds: f.Idle.Seconds(), Expired: f.Expired, Packets: f.Packets, Bytes: f.Bytes,
		}
		if f.As.IsValid() {
			s.ClientAs = f.As.String()
		}
		out.Items = append(out.Items, s)
	}
	return out, nil
}

// protocolWord is the name of a protocol.
func protocolWord(number uint8) string {
	if name, known := messages.Protocol_name[int32(number)]; known && number != 0 {
		return name
	}
	return strconv.Itoa(int(number))
}
