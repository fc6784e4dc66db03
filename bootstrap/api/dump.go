package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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

// Dumped gives the answers of an agent from its present Dump.
type Dumped interface {
	Prober
	Reader
}

// NewDumped returns the answers; now is called for each of them.
func NewDumped(now func() *Dump) Dumped { return dumped(now) }

type dumped func() *Dump

// have returns the part of a type, or the reason why it is missing.
func have[T any](d *Dump) (*T, error) {
	for field, value := range reflect.ValueOf(d).Elem().Fields() {
		if part, is := value.Interface().(*T); is && part == nil {
			return nil, d.missing(field.Tag.Get("json"))
		} else if is {
			return new(*part), nil
		}
	}
	return nil, d.missing(reflect.TypeFor[T]().Name())
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

// listed returns a copy of a list, or the reason why it is missing.
func listed[T any](d *Dump, part string, list []T) ([]T, error) {
	if list == nil {
		return nil, d.missing(part)
	}
	return slices.Clone(list), nil
}

func (dumped) Live() error                                   { return nil }
func (d dumped) Readiness() Readiness                        { return d().Readiness }
func (d dumped) Status(context.Context) (*NodeStatus, error) { return have[NodeStatus](d()) }

func (d dumped) Interfaces(context.Context) (*Interfaces, error) { return have[Interfaces](d()) }

func (d dumped) Addresses(context.Context) (*Addresses, error) { return have[Addresses](d()) }
func (d dumped) Sessions(context.Context) (*Sessions, error)   { return have[Sessions](d()) }

func (d dumped) External(context.Context) (*External, error) { return have[External](d()) }
func (d dumped) Nodes(context.Context) (*Nodes, error)       { return have[Nodes](d()) }
func (d dumped) Resync(context.Context) (*Resync, error)     { return have[Resync](d()) }
func (d dumped) Diff(context.Context) (*Diff, error)         { return have[Diff](d()) }
func (d dumped) Chaos(context.Context) (*live.Status, error) { return have[live.Status](d()) }

func (d dumped) Services(context.Context) ([]Service, error) {
	n := d()
	return listed(n, "services", n.Services)
}

func (d dumped) Service(_ context.Context, key string) (*ServiceDetail, error) {
	n := d()
	if detail := n.Details[key]; detail != nil {
		return new(*detail), nil
	}
	if slices.ContainsFunc(n.Services, func(s Service) bool { return s.Key == key }) {
		return nil, fmt.Errorf("%w: the archive has only the line of service %s in the list", ErrUnavailable, key)
	}
	return nil, fmt.Errorf("service %s: %w", key, ErrNotFound)
}

func (d dumped) Actors(context.Context) ([]Actor, error) {
	n := d()
	return listed(n, "actors", n.Actors)
}

func (d dumped) Actor(_ context.Context, path string) (*Actor, error) {
	n := d()
	i, found := slices.BinarySearchFunc(n.Actors, path, func(a Actor, p string) int { return cmp.Compare(a.Path, p) })
	if !found {
		return nil, fmt.Errorf("actor %s: %w", path, ErrNotFound)
	}
	return new(n.Actors[i]), nil
}

func (d dumped) Events(_ context.Context, q EventQuery) (*EventPage, error) {
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

func (dumped) Mailbox(context.Context, string) (*Mailbox, error)      { return nil, errRedacted }
func (dumped) State(context.Context, string) (json.RawMessage, error) { return nil, errRedacted }
func (dumped) Failures(context.Context, string) ([]Failure, error)    { return nil, errRedacted }
func (dumped) Traffic(context.Context, string) (*Traffic, error)      { return nil, errRedacted }
func (dumped) DeadLetters(context.Context) (*DeadLetters, error)      { return nil, errRedacted }

func (dumped) ServiceSessions(context.Context, string) (*ServiceSessions, error) {
	return nil, fmt.Errorf("%w: an archive has no sessions", ErrUnavailable)
}

func (dumped) Packet(context.Context, string, string) (*Packet, error) {
	return nil, fmt.Errorf("%w: an archive does not explain packets: see the frontends of the service", ErrUnavailable)
}
