package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
)

// Dump is the state of one agent, for example in an archive of `troupe sysdump`. A part without a
// value was not collected; Errors has the reason. A collected Dump is immutable.
type Dump struct {
	Name       string       `json:"name"`
	Readiness  Readiness    `json:"readiness"`
	Status     *NodeStatus  `json:"status"`
	Services   []Service    `json:"services"`
	Interfaces *Interfaces  `json:"interfaces"`
	Addresses  *Addresses   `json:"addresses"`
	Nodes      *Nodes       `json:"nodes"`
	Sessions   *Sessions    `json:"sessions"`
	External   *External    `json:"external"`
	Actors     []Actor      `json:"actors"` // ordered by path
	Events     []Event      `json:"events"` // the newest first
	Resync     *Resync      `json:"resync"`
	Diff       *Diff        `json:"diff"`
	Chaos      *live.Status `json:"chaos"`
	// Details are services by key: first services that are not in sync, then others up to the
	// limits.
	Details map[string]*ServiceDetail `json:"details"`
	// Metrics is the text of /metrics.
	Metrics string `json:"metrics"`
	// Errors are what could not be collected, each one line.
	Errors []string `json:"errors"`
}

// Dumped gives the answers of an agent from its present Dump. It is a Prober and a Reader.
type Dumped func() *Dump

// have returns a part of the dump, or the reason why it is missing.
func have[T any](d *Dump, part string, value *T) (*T, error) {
	if value == nil {
		return nil, d.missing(part)
	}
	copied := *value
	return &copied, nil
}

// missing is the error of a part that was not collected.
func (d *Dump) missing(part string) error {
	for _, e := range d.Errors {
		if strings.HasPrefix(e, part+": ") {
			return fmt.Errorf("%w: not in the archive: %s", ErrUnavailable, e)
		}
	}
	return fmt.Errorf("%w: %s of node %s: not in the archive", ErrUnavailable, part, d.Name)
}

// Live satisfies Prober.
func (Dumped) Live() error { return nil }

// Readiness satisfies Prober.
func (d Dumped) Readiness() Readiness { return d().Readiness }

// Status satisfies Reader.
func (d Dumped) Status(context.Context) (*NodeStatus, error) {
	n := d()
	return have(n, "status", n.Status)
}

// Services satisfies Reader.
func (d Dumped) Services(context.Context) ([]Service, error) {
	n := d()
	if n.Services == nil {
		return nil, n.missing("services")
	}
	return slices.Clone(n.Services), nil
}

// Service satisfies Reader.
func (d Dumped) Service(_ context.Context, key string) (*ServiceDetail, error) {
	n := d()
	if detail := n.Details[key]; detail != nil {
		return have(n, key, detail)
	}
	if slices.ContainsFunc(n.Services, func(s Service) bool { return s.Key == key }) {
		return nil, fmt.Errorf("%w: the archive has only the line of service %s in the list", ErrUnavailable, key)
	}
	return nil, fmt.Errorf("service %s: %w", key, ErrNotFound)
}

// Interfaces satisfies Reader.
func (d Dumped) Interfaces(context.Context) (*Interfaces, error) {
	n := d()
	return have(n, "interfaces", n.Interfaces)
}

// Addresses satisfies Reader.
func (d Dumped) Addresses(context.Context) (*Addresses, error) {
	n := d()
	return have(n, "addresses", n.Addresses)
}

// Sessions satisfies Reader.
func (d Dumped) Sessions(context.Context) (*Sessions, error) {
	n := d()
	return have(n, "sessions", n.Sessions)
}

// External satisfies Reader.
func (d Dumped) External(context.Context) (*External, error) {
	n := d()
	return have(n, "external", n.External)
}

// Nodes satisfies Reader.
func (d Dumped) Nodes(context.Context) (*Nodes, error) {
	n := d()
	return have(n, "nodes", n.Nodes)
}

// Resync satisfies Reader.
func (d Dumped) Resync(context.Context) (*Resync, error) {
	n := d()
	return have(n, "resync", n.Resync)
}

// Diff satisfies Reader.
func (d Dumped) Diff(context.Context) (*Diff, error) {
	n := d()
	return have(n, "diff", n.Diff)
}

// Chaos satisfies Reader.
func (d Dumped) Chaos(context.Context) (*live.Status, error) {
	n := d()
	return have(n, "chaos", n.Chaos)
}

// Actors satisfies Reader.
func (d Dumped) Actors(context.Context) ([]Actor, error) {
	n := d()
	if n.Actors == nil {
		return nil, n.missing("actors")
	}
	return slices.Clone(n.Actors), nil
}

// Actor satisfies Reader.
func (d Dumped) Actor(_ context.Context, path string) (*Actor, error) {
	n := d()
	i, found := slices.BinarySearchFunc(n.Actors, path, func(a Actor, p string) int { return cmp.Compare(a.Path, p) })
	if !found {
		return nil, fmt.Errorf("actor %s: %w", path, ErrNotFound)
	}
	return have(n, path, &n.Actors[i])
}

// Events satisfies Reader.
func (d Dumped) Events(_ context.Context, q EventQuery) (*EventPage, error) {
	page := &EventPage{Items: []Event{}}
	for _, e := range d().Events {
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

// errRedacted is the answer for data that an archive leaves out.
var errRedacted = fmt.Errorf("%w: an archive has no states and messages of actors", ErrUnavailable)

// Mailbox satisfies Reader.
func (Dumped) Mailbox(context.Context, string) (*Mailbox, error) { return nil, errRedacted }

// State satisfies Reader.
func (Dumped) State(context.Context, string) (json.RawMessage, error) { return nil, errRedacted }

// Failures satisfies Reader.
func (Dumped) Failures(context.Context, string) ([]Failure, error) { return nil, errRedacted }

// Traffic satisfies Reader.
func (Dumped) Traffic(context.Context, string) (*Traffic, error) { return nil, errRedacted }

// DeadLetters satisfies Reader.
func (Dumped) DeadLetters(context.Context) (*DeadLetters, error) { return nil, errRedacted }

// ServiceSessions satisfies Reader.
func (Dumped) ServiceSessions(context.Context, string) (*ServiceSessions, error) {
	return nil, fmt.Errorf("%w: an archive has no sessions", ErrUnavailable)
}

// Packet satisfies Reader.
func (Dumped) Packet(context.Context, string, string) (*Packet, error) {
	return nil, fmt.Errorf("%w: an archive does not explain packets: see the frontends of the service", ErrUnavailable)
}
