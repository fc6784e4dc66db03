package consul

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
)

// entry is one element of an answer of /v1/health/service.
type entry struct {
	Node    struct{ Node, Address string }
	Service struct {
		ID, Address string
		Port        int
		Tags        []string
	}
	Checks []struct{ CheckID, Status string }
}

// check is one check, of an instance or of a node.
type check struct{ node, id string }

// found is what is known of a service.
type found struct {
	instances []catalog.Instance
	nodes     []string // of the instances
	foreign   bool     // its tags keep every instance from being used
}

func (f found) equal(other found) bool {
	return f.foreign == other.foreign && slices.EqualFunc(f.instances, other.instances, catalog.Instance.Equal)
}

// decode decodes an answer.
func decode(what string, body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if err == nil && bytes.Equal(bytes.TrimSpace(body), []byte("null")) {
		err = errors.New("the answer is null")
	}
	if err != nil {
		return fmt.Errorf("decode the %s: %w", what, err)
	}
	return nil
}

// decodeNames returns the names in an answer of /v1/catalog/services, ordered; without Consul itself, and what could be no segment of a path.
func decodeNames(body []byte) ([]string, error) {
	var services map[string][]string
	if err := decode("services", body, &services); err != nil {
		return nil, err
	}
	maps.DeleteFunc(services, func(name string, _ []string) bool {
		return name == "" || name == "." || name == ".." || strings.EqualFold(name, "consul")
	})
	return slices.Sorted(maps.Keys(services)), nil
}

// decodeChecks returns the checks in an answer of /v1/health/state, with the names of their services; "" = the check is one of a node.
func decodeChecks(body []byte) (map[check]string, error) {
	var checks []struct{ Node, CheckID, ServiceName string }
	if err := decode("checks", body, &checks); err != nil {
		return nil, err
	}
	out := map[check]string{}
	for _, c := range checks {
		out[check{c.Node, c.CheckID}] = c.ServiceName
	}
	return out, nil
}

// decodeNodes returns the addresses of the nodes in an answer of /v1/catalog/nodes.
func decodeNodes(body []byte) (map[string]string, error) {
	var nodes []struct{ Node, Address string }
	if err := decode("nodes", body, &nodes); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, n := range nodes {
		out[n.Node] = n.Address
	}
	return out, nil
}

// decodeInstances returns the service in an answer of /v1/health/service.
func decodeInstances(body []byte, o Options) (found, error) {
	var entries []entry
	if err := decode("instances", body, &entries); err != nil {
		return found{}, err
	}
	var out found
	for _, e := range entries {
		if e.Service.Port < 0 || e.Service.Port > 65535 {
			return found{}, fmt.Errorf("decode the instances: port %d of %.80q", e.Service.Port, e.Service.ID)
		}
		if o.Tag != "" && !slices.Contains(e.Service.Tags, o.Tag) || o.ExcludedTag != "" && slices.Contains(e.Service.Tags, o.ExcludedTag) {
			continue
		}
		i := catalog.Instance{ID: e.Service.ID, Address: e.Service.Address, NodeAddress: e.Node.Address, State: stateOf(e), Ports: map[string]uint16{}}
		if e.Service.Port != 0 {
			i.Ports[""] = uint16(e.Service.Port)
		}
		out.instances, out.nodes = append(out.instances, i), append(out.nodes, e.Node.Node)
	}
	out.foreign = len(entries) > 0 && len(out.instances) == 0
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
