package consul

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// entry is one element of an answer of /v1/health/service.
type entry struct {
	Node    struct{ Address string }
	Service struct {
		ID, Address string
		Port        int
	}
	Checks []struct{ CheckID, Status string }
}

// decodeNames returns the names in an answer of /v1/catalog/services.
func decodeNames(body []byte) ([]string, error) {
	var services map[string][]string
	if err := json.Unmarshal(body, &services); err != nil {
		return nil, fmt.Errorf("decode the services: %w", err)
	}
	if services == nil {
		return nil, fmt.Errorf("decode the services: the answer is null")
	}
	delete(services, "consul")
	names := make([]string, 0, len(services))
	for name := range services {
		names = append(names, name)
	}
	return names, nil
}

// decodeInstances returns the service in an answer of /v1/health/service.
func decodeInstances(name string, body []byte) (catalog.Service, error) {
	var entries []entry
	if err := json.Unmarshal(body, &entries); err != nil {
		return catalog.Service{}, fmt.Errorf("decode the instances: %w", err)
	}
	if entries == nil {
		return catalog.Service{}, fmt.Errorf("decode the instances: the answer is null")
	}
	out := catalog.Service{Name: name}
	for _, e := range entries {
		if e.Service.Port < 0 || e.Service.Port > 65535 {
			return catalog.Service{}, fmt.Errorf("decode the instances: port %d of %.80q", e.Service.Port, e.Service.ID)
		}
		i := catalog.Instance{ID: e.Service.ID, Address: e.Service.Address, NodeAddress: e.Node.Address, State: stateOf(e), Ports: map[string]uint16{}}
		if e.Service.Port != 0 {
			i.Ports[""] = uint16(e.Service.Port)
		}
		out.Instances = append(out.Instances, i)
	}
	return out, nil
}

// stateOf returns the state that the worst check means; maintenance counts before all others.
func stateOf(e entry) catalog.State {
	state := catalog.Ready
	for _, c := range e.Checks {
		switch {
		case c.CheckID == "_node_maintenance" || strings.HasPrefix(c.CheckID, "_service_maintenance:"):
			return catalog.Terminating
		case c.Status != "passing" && c.Status != "warning":
			state = catalog.NotReady
		}
	}
	return state
}
