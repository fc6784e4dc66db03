package live

import (
	"context"
	"fmt"

	"github.com/troupe-vpp/troupe/vpp/link"
)

// World is the agent from the view of drills. Its methods are safe for concurrent use; methods with
// a context return when the context ends.
type World interface {
	// Readiness reports whether the node is ready, and the reasons if it is not.
	Readiness() (ready bool, reasons string)
	// Services returns all services, ordered by key.
	Services(ctx context.Context) ([]Service, error)
	// Diff reads VPP and returns the operations that would bring it to the desired state, each
	// as one line.
	Diff(ctx context.Context) ([]string, error)
	// Usage counts the requests to VPP so far, without the requests of Diff.
	Usage() link.Usage
	// Changes counts the reasons to change VPP: changes of the cluster, and restarts of VPP.
	Changes() uint64
}

// Service is the part of the status of a service that drills evaluate.
type Service struct {
	// Key is "namespace/name".
	Key string
	// Generation of its last input.
	Generation uint64
	// State is the state in the API; "in-sync", "partly" and "not-served" are the good ones.
	State string
	// Error is the last error; "" = none.
	Error string
}

// good reports whether the service has reached its desired state.
func (s *Service) good() bool {
	return s.State == "in-sync" || s.State == "partly" || s.State == "not-served"
}

// complaints returns all problems of the agent, by the component that has them.
func complaints(ctx context.Context, w World) map[string]string {
	out := map[string]string{}
	if ready, why := w.Readiness(); !ready {
		out["readiness"] = "not ready: " + why
	}
	services, err := w.Services(ctx)
	if err != nil {
		out["services"] = "services cannot be read: " + err.Error()
	}
	for i := range services {
		if s := &services[i]; !s.good() {
			out["service "+s.Key] = fmt.Sprintf("%s is %s", s.Key, s.State)
		}
	}
	return out
}

// worse returns the first new problem in the order of components; "" = there is none.
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
