package api

import (
	"context"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
)

// Unsupported is a Reader and Controller that supports nothing, for a Backend that is not an agent
// to embed.
type Unsupported struct{}

// Status satisfies Reader.
func (Unsupported) Status(context.Context) (*NodeStatus, error) { return nil, ErrUnsupported }

// Services satisfies Reader.
func (Unsupported) Services(context.Context) ([]Service, error) { return nil, ErrUnsupported }

// Service satisfies Reader.
func (Unsupported) Service(context.Context, string) (*ServiceDetail, error) {
	return nil, ErrUnsupported
}

// ServiceSessions satisfies Reader.
func (Unsupported) ServiceSessions(context.Context, string) (*ServiceSessions, error) {
	return nil, ErrUnsupported
}

// Packet satisfies Reader.
func (Unsupported) Packet(context.Context, string, string) (*Packet, error) {
	return nil, ErrUnsupported
}

// Interfaces satisfies Reader.
func (Unsupported) Interfaces(context.Context) (*Interfaces, error) { return nil, ErrUnsupported }

// Sessions satisfies Reader.
func (Unsupported) Sessions(context.Context) (*Sessions, error) { return nil, ErrUnsupported }

// External satisfies Reader.
func (Unsupported) External(context.Context) (*External, error) { return nil, ErrUnsupported }

// Nodes satisfies Reader.
func (Unsupported) Nodes(context.Context) (*Nodes, error) { return nil, ErrUnsupported }

// Events satisfies Reader.
func (Unsupported) Events(context.Context, EventQuery) (*EventPage, error) {
	return nil, ErrUnsupported
}

// Resync satisfies Reader.
func (Unsupported) Resync(context.Context) (*Resync, error) { return nil, ErrUnsupported }

// Diff satisfies Reader.
func (Unsupported) Diff(context.Context) (*Diff, error) { return nil, ErrUnsupported }

// Chaos satisfies Reader.
func (Unsupported) Chaos(context.Context) (*live.Status, error) { return nil, ErrUnsupported }

// StartResync satisfies Controller.
func (Unsupported) StartResync(context.Context, ResyncRequest) error { return ErrUnsupported }

// ApplyExternal satisfies Controller.
func (Unsupported) ApplyExternal(context.Context, string, []byte) (*ExternalResult, error) {
	return nil, ErrUnsupported
}

// Command satisfies Controller.
func (Unsupported) Command(context.Context, string, Verb) error { return ErrUnsupported }

// Inject satisfies Controller.
func (Unsupported) Inject(context.Context, string, live.Fault) (*live.Record, error) {
	return nil, ErrUnsupported
}

// StartDrill satisfies Controller.
func (Unsupported) StartDrill(context.Context, string, live.Plan) (*live.RunStatus, error) {
	return nil, ErrUnsupported
}

// StopChaos satisfies Controller.
func (Unsupported) StopChaos(context.Context, string) (int, error) { return 0, ErrUnsupported }

// AttachPod satisfies Controller.
func (Unsupported) AttachPod(context.Context, string, string) (*PodInterface, error) {
	return nil, ErrUnsupported
}
