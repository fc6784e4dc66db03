package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Node is the state of one agent in an archive. A part without a value was not collected; Errors
// has the reason. A collected Node is immutable.
type dumpedNode struct {
	Name       string          `json:"name"`
	Readiness  api.Readiness   `json:"readiness"`
	Stat       *api.NodeStatus `json:"status"`
	All        []api.Service   `json:"services"`
	Ifs        *api.Interfaces `json:"interfaces"`
	Addrs      *api.Addresses  `json:"addresses"`
	Cluster    *api.Nodes      `json:"nodes"`
	Table      *api.Sessions   `json:"sessions"`
	Ext        *api.External   `json:"external"`
	Troupe     []api.Actor     `json:"actors"`
	Journal    []api.Event     `json:"events"` // the newest first
	Progress   *api.Resync     `json:"resync"`
	Difference *api.Diff       `json:"diff"`
	Faults     *live.Status    `json:"chaos"`
	// Details are services by key: first services that are not in sync, then others up to the
	// limits.
	Details map[string]*api.ServiceDetail `json:"details"`
	// Metrics is the text of /metrics.
	Metrics string `json:"metrics"`
	// Errors are what could not be collected, each one line.
	Errors []string `json:"errors"`
}

// archivedAgent gives the answers of an agent at the time of the archive.
type archivedAgent struct {
	api.Controller // nil: an archive has no control socket
	node           *dumpedNode
}

var _ api.Backend = archivedAgent{}

// newArchived returns the backend of a node in an archive.
func newArchived(node *dumpedNode) archivedAgent { return archivedAgent{node: node} }

// missing is the error of a part that was not collected.
func (b archivedAgent) missing(part string) error {
	for _, e := range b.node.Errors {
		if strings.HasPrefix(e, part+": ") {
			return fmt.Errorf("%w: not in the archive: %s", api.ErrUnavailable, e)
		}
	}
	return fmt.Errorf("%w: %s of node %s: not in the archive", api.ErrUnavailable, part, b.node.Name)
}

// have returns a part, or the reason why it is missing.
func have[T any](b archivedAgent, part string, value *T) (*T, error) {
	if value == nil {
		return nil, b.missing(part)
	}
	copied := *value
	return &copied, nil
}

func (archivedAgent) Live() error { return nil }

func (b archivedAgent) Readiness() api.Readiness { return b.node.Readiness }

func (b archivedAgent) Status(context.Context) (*api.NodeStatus, error) {
	return have(b, "status", b.node.Stat)
}

func (b archivedAgent) Services(context.Context) ([]api.Service, error) {
	if b.node.All == nil {
		return nil, b.missing("services")
	}
	return slices.Clone(b.node.All), nil
}

func (b archivedAgent) Service(_ context.Context, key string) (*api.ServiceDetail, error) {
	if d := b.node.Details[key]; d != nil {
		return have(b, key, d)
	}
	if slices.ContainsFunc(b.node.All, func(s api.Service) bool { return s.Key == key }) {
		return nil, fmt.Errorf("%w: the archive has only the line of service %s in the list", api.ErrUnavailable, key)
	}
	return nil, fmt.Errorf("service %s: %w", key, api.ErrNotFound)
}

func (b archivedAgent) Interfaces(context.Context) (*api.Interfaces, error) {
	return have(b, "interfaces", b.node.Ifs)
}

func (b archivedAgent) Addresses(context.Context) (*api.Addresses, error) {
	return have(b, "addresses", b.node.Addrs)
}

func (b archivedAgent) Sessions(context.Context) (*api.Sessions, error) {
	return have(b, "sessions", b.node.Table)
}

func (b archivedAgent) External(context.Context) (*api.External, error) {
	return have(b, "external", b.node.Ext)
}

func (b archivedAgent) Nodes(context.Context) (*api.Nodes, error) {
	return have(b, "nodes", b.node.Cluster)
}

func (b archivedAgent) Resync(context.Context) (*api.Resync, error) {
	return have(b, "resync", b.node.Progress)
}

func (b archivedAgent) Diff(context.Context) (*api.Diff, error) {
	return have(b, "diff", b.node.Difference)
}

func (b archivedAgent) Chaos(context.Context) (*live.Status, error) {
	return have(b, "chaos", b.node.Faults)
}

func (b archivedAgent) Actors(context.Context) ([]api.Actor, error) {
	if b.node.Troupe == nil {
		return nil, b.missing("actors")
	}
	return slices.Clone(b.node.Troupe), nil
}

func (b archivedAgent) Actor(_ context.Context, path string) (*api.Actor, error) {
	i, found := slices.BinarySearchFunc(b.node.Troupe, path, func(a api.Actor, p string) int { return cmp.Compare(a.Path, p) })
	if !found {
		return nil, fmt.Errorf("actor %s: %w", path, api.ErrNotFound)
	}
	return have(b, path, &b.node.Troupe[i])
}

// errRedacted is the answer for data that an archive leaves out.
var errRedacted = fmt.Errorf("%w: an archive has no states and messages of actors", api.ErrUnavailable)

func (archivedAgent) Mailbox(context.Context, string) (*api.Mailbox, error) { return nil, errRedacted }

func (archivedAgent) State(context.Context, string) (json.RawMessage, error) { return nil, errRedacted }

func (archivedAgent) Failures(context.Context, string) ([]api.Failure, error) {
	return nil, errRedacted
}

func (archivedAgent) Traffic(context.Context, string) (*api.Traffic, error) { return nil, errRedacted }

func (archivedAgent) DeadLetters(context.Context) (*api.DeadLetters, error) { return nil, errRedacted }

func (archivedAgent) ServiceSessions(context.Context, string) (*api.ServiceSessions, error) {
	return nil, fmt.Errorf("%w: an archive has no sessions", api.ErrUnavailable)
}

func (archivedAgent) Packet(context.Context, string, string) (*api.Packet, error) {
	return nil, fmt.Errorf("%w: an archive does not explain packets: see the frontends of the service", api.ErrUnavailable)
}

func (b archivedAgent) Events(_ context.Context, q api.EventQuery) (*api.EventPage, error) {
	page := &api.EventPage{Items: []api.Event{}}
	for _, e := range b.node.Journal {
		switch {
		case q.Before != 0 && e.Seq >= q.Before, e.Seq <= q.After && q.After != 0, q.Kind != "" && e.Kind != q.Kind,
			q.Object != "" && e.Object != q.Object, q.Cause != 0 && e.Cause != q.Cause:
		case len(page.Items) == q.Limit:
			page.Next = page.Items[q.Limit-1].Seq
			return page, nil
		default:
			page.Items = append(page.Items, e)
		}
	}
	return page, nil
}
