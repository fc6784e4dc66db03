package files

import (
	"fmt"

	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

// yamlValue is a value in a YAML document. Aliases are followed only while the value is read,
// within the budget of the stream.
type yamlValue struct {
	node   *strictyaml.Node
	budget *strictyaml.Budget
}

func (v *yamlValue) line() int { return v.node.Line }

func (v *yamlValue) header() (apiVersion, kind string, err error) {
	found, err := v.budget.Find(v.node, "apiVersion", "kind")
	for i, into := range []*string{&apiVersion, &kind} {
		switch n := found[i]; {
		case n == nil || err != nil:
		case n.ShortTag() != "!!str":
			err = fmt.Errorf("%s: %w", []string{"apiVersion", "kind"}[i], errNoString)
		default:
			*into = n.Value
		}
	}
	return apiVersion, kind, err
}

func (v *yamlValue) names() (namespace, name string) {
	found, _ := v.budget.Find(v.node, "metadata")
	if found[0] == nil {
		return "", ""
	}
	found, _ = v.budget.Find(found[0], "namespace", "name")
	for i, into := range []*string{&namespace, &name} {
		if found[i] != nil {
			*into = found[i].Value
		}
	}
	return namespace, name
}

// items satisfies value. The elements share the budget of the stream.
func (v *yamlValue) items() ([]value, error) {
	found, err := v.budget.Find(v.node, "items")
	list := found[0]
	switch {
	case err != nil || list == nil || list.ShortTag() == "!!null":
		return nil, err
	case list.ShortTag() != "!!seq":
		return nil, errNoList
	}
	out := make([]value, len(list.Content))
	for i, node := range list.Content {
		out[i] = &yamlValue{node, v.budget}
	}
	return out, nil
}

// json satisfies value. One object may use the limit of an object or the rest of the budget,
// whichever is less: hostile objects share one budget.
func (v *yamlValue) json() ([]byte, error) { return v.budget.JSON(v.node, maxObject) }
