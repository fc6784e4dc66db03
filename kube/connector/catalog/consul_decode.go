package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// entry is one element of an answer of /v1/health/service.
type entry struct {
	Node    struct{ Address string }
	Service struct {
		ID, Address string
		Port        int
		Tags        []string
	}
	Checks []struct{ CheckID, Status string }
}

// found is the decoded content of a service.
type found struct {
	instances []Instance
	foreign   bool // its tags keep every instance from being used
	// Consul has no instance of the service. Each name in a list of Consul has one, so the last
	// list is older than this answer. Only a list says that a service is gone.
	absent bool
}

func (f found) equal(other found) bool {
	return f.foreign == other.foreign && f.absent == other.absent && slices.EqualFunc(f.instances, other.instances, Instance.Equal)
}

// decodeNames returns the names in an answer of /v1/catalog/services, ordered. It leaves out Consul
// itself and names that cannot be a segment of a path. If there are too many, it returns the first
// names with an error; Consul orders them.
func decodeNames(a *answer, most int) ([]string, error) {
	names := map[string]bool{}
	err := a.walk("services", '{', func(d *json.Decoder) error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var tags []string
		if err := d.Decode(&tags); err != nil {
			return err
		}
		name := kept(key.(string), keptName)
		switch {
		case name == "" || name == "." || name == ".." || strings.EqualFold(name, "consul") || names[name]:
		case len(names) == most:
			return errTooMany
		default:
			names[name] = true
		}
		return nil
	})
	switch {
	case errors.Is(err, errTooMany):
		err = fmt.Errorf("more than %d services, the first ones are used", most)
	case err != nil:
		return nil, err
	}
	return slices.Sorted(maps.Keys(names)), err
}

// errTooMany ends the decoding.
var errTooMany = own("too many")

// keptName is the number of kept bytes of a name: one more than allowed, so that catalog.Clean
// refuses longer names.
const keptName = MaxName + 1

// decodeInstances returns the service in an answer of /v1/health/service.
func decodeInstances(a *answer, o *ConsulOptions) (found, error) {
	out := found{absent: true}
	err := each(a, "instances", func(e entry) error {
		out.absent = false
		switch {
		case e.Service.Port < 0 || e.Service.Port > 65535:
			return own("Service.Port is no port")
		case o.Tag != "" && !slices.Contains(e.Service.Tags, o.Tag) || o.ExcludedTag != "" && slices.Contains(e.Service.Tags, o.ExcludedTag):
			return nil
		case len(out.instances) == o.Limits.Instances:
			return own("more than %d instances", o.Limits.Instances)
		}
		i := Instance{
			ID: kept(e.Service.ID, keptText), Address: kept(e.Service.Address, keptText), NodeAddress: kept(e.Node.Address, keptText),
			State: stateOf(e), Ports: map[string]uint16{},
		}
		if e.Service.Port != 0 {
			i.Ports[""] = uint16(e.Service.Port)
		}
		out.instances = append(out.instances, i)
		return nil
	})
	if err != nil {
		return found{}, err
	}
	out.foreign = !out.absent && len(out.instances) == 0
	return out, nil
}

// stateOf returns the state that follows from the worst check; maintenance counts first.
func stateOf(e entry) State {
	state := Ready
	for _, c := range e.Checks {
		switch {
		case c.CheckID == "_node_maintenance" || strings.HasPrefix(c.CheckID, "_service_maintenance:"):
			return Terminating
		case c.Status != "passing" && c.Status != "warning":
			state = NotReady
		}
	}
	return state
}
