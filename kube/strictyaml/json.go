package strictyaml

import (
	"encoding/json"
	"fmt"
	"math"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// JSON returns a value as JSON, in at most so many steps. A date stays the text of the document, as
// everywhere in Kubernetes. The error is a *Problem without a path.
func (b *Budget) JSON(n *Node, most int) ([]byte, error) {
	limit := max(0, min(Budget(most), *b))
	w := writer{left: limit}
	err := w.value(n, 0)
	*b -= limit - w.left
	return w.out, err
}

// writer writes nodes as JSON. It stops at maxDepth and when its budget is used up, so that aliases
// can neither expand without bound nor form an endless cycle.
type writer struct {
	out  []byte
	left Budget
}

// value writes any node. Every node costs one step, so that a cycle of empty nodes ends too.
func (w *writer) value(n *Node, depth int) error {
	n = Resolve(n)
	switch {
	case depth > maxDepth:
		return &Problem{Line: n.Line, Message: "is nested too deeply"}
	case !w.left.take(1):
		return tooLarge(n)
	case n.Kind == yaml.MappingNode:
		return w.mapping(n, depth)
	case n.Kind == yaml.SequenceNode:
		return w.sequence(n, depth)
	}
	return w.scalar(n)
}

func (w *writer) sequence(n *Node, depth int) error {
	w.out = append(w.out, '[')
	for i, element := range n.Content {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(element, depth+1); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	return nil
}

func (w *writer) mapping(n *Node, depth int) error {
	w.out = append(w.out, '{')
	err := w.left.members(n, make(map[string]bool, len(n.Content)/2), func(key, value *Node, again bool) error {
		switch {
		case key.Kind != yaml.ScalarNode:
			return &Problem{Line: key.Line, Message: "a key is not a string"}
		case again:
			return &Problem{Line: key.Line, Message: "the key " + quoted(key.Value) + " occurs twice"}
		}
		if w.out[len(w.out)-1] != '{' {
			w.out = append(w.out, ',')
		}
		if err := w.text(key); err != nil {
			return err
		}
		w.out = append(w.out, ':')
		return w.value(value, depth+1)
	})
	w.out = append(w.out, '}')
	return err
}

func (w *writer) scalar(n *Node) error {
	var value any
	switch n.ShortTag() {
	case "!!null":
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&value); err != nil {
			return &Problem{Line: n.Line, Message: err.Error()}
		}
		// JSON has no form for .nan and .inf. json.Marshal would fail too, but its error
		// would not have the line.
		if f, ok := value.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return &Problem{Line: n.Line, Message: quoted(n.Value) + " is not a number of JSON"}
		}
	default:
		return w.text(n)
	}
	return w.marshal(n, value)
}

// text writes a string if it fits into the budget, because many aliases of one large string expand
// fastest.
func (w *writer) text(n *Node) error {
	if !w.left.take(len(n.Value)) {
		return tooLarge(n)
	}
	return w.marshal(n, n.Value)
}

func (w *writer) marshal(n *Node, value any) error {
	out, err := json.Marshal(value)
	if err != nil {
		return &Problem{Line: n.Line, Message: fmt.Sprintf("write as JSON: %v", err)}
	}
	w.out = append(w.out, out...)
	return nil
}
