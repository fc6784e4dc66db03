package live

import (
	"context"
	"fmt"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// World is the agent as drills see it. Its methods are safe for concurrent use; those with a context give up when it ends.
type World interface {
	// Readiness says whether the node serves what it should, and if not why.
	Readiness() (ready bool, reasons string)
	// Services returns all services, ordered by key.
	Services(ctx context.Context) ([]Service, error)
	// Diff reads VPP back and returns the operations that would make it what it should be, each as one line.
	Diff(ctx context.Context) ([]string, error)
	// Usage is what VPP was asked for so far, without what Diff asks.
	Usage() link.Usage
	// Changes counts reasons to change VPP: what the source has said was changed, and other VPPs than before.
	Changes() uint64
}

// Service is what drills want to know of a service.
type Service struct {
	// Key is "namespace/name".
	Key string
	// Generation of its last input.
	Generation uint64
	// State is a word of the API; "in-sync" and "not-served" are good ones.
	State string
	// Error is the last one; "" = none.
	Error string
}

// good reports whether nothing is left to do for the service.
func (s *Service) good() bool { return s.State == "in-sync" || s.State == "not-served" }

// complaints are all things that are not as they should be: what by whom.
func complaints(ctx context.Context, w World) map[string]string {
	out := map[string]string{}
	if ready, why := w.Readiness(); !ready {
		out["readiness"] = "not ready: " + why
	}
	services, err := w.Services(ctx)
	if err != nil {
		out["services"] = "services cannot be seen: " + err.Error()
	}
	for i := range services {
		if s := &services[i]; !s.good() {
			out["service "+s.Key] = fmt.Sprintf("%s is %s", s.Key, s.State)
		}
	}
	return out
}

// worse returns one complaint that was not there before, the first by subject; "" = there is none.
func worse(before, now map[string]string) string {
	subject := ""
	for one := range now {
		if _, old := before[one]; !old && (subject == "" || one < subject) {
			subject = one
		}
	}
	if subject == "" {
		return ""
	}
	return now[subject]
}
