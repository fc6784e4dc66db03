package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// oneReading limits the rate at which VPP lists sessions for clients on TCP, because the workers of
// VPP stop meanwhile. It repeats the answer of the last reading.
type oneReading struct {
	turn    chan struct{} // a token; its holder owns the following
	key     string
	present *api.ServiceSessions
}

func newOneReading() *oneReading { return &oneReading{turn: make(chan struct{}, 1)} }

// get returns the last reading if it has the same service and is not older than diffShared.
// Otherwise it returns a new one, or an error if the last reading of another service is too recent.
func (o *oneReading) get(ctx context.Context, key string, read func(context.Context, string) (*api.ServiceSessions, error)) (*api.ServiceSessions, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: read sessions of %s: %w", api.ErrUnavailable, key, ctx.Err())
	}
	if o.present != nil {
		switch age := time.Since(o.present.Time); {
		case age >= diffShared:
		case o.key == key:
			return o.present, nil
		default:
			return nil, fmt.Errorf("%w: sessions of %s were read %s ago, and VPP is asked every %s: try again, or ask the control socket",
				api.ErrUnavailable, o.key, age.Round(time.Second/10), diffShared)
		}
	}
	present, err := read(ctx, key)
	if err == nil {
		o.key, o.present = key, present
	}
	return present, err
}

// serviceSessions answers the sessions of a service.
func (s *Server) serviceSessions(control bool) get {
	return func(r *http.Request) (any, error) {
		if _, err := parameters(r.URL.RawQuery); err != nil {
			return nil, err
		}
		key := r.PathValue("namespace") + "/" + r.PathValue("name")
		if control {
			return s.backend.ServiceSessions(r.Context(), key)
		}
		return s.ServiceSessions(r.Context(), key)
	}
}

// ServiceSessions answers in the same way as the read-only listener: clients share a reading of
// VPP.
func (s *Server) ServiceSessions(ctx context.Context, key string) (*api.ServiceSessions, error) {
	return s.sessions.get(ctx, key, s.backend.ServiceSessions)
}
