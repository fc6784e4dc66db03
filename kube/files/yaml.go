package files

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// yamlValue is a value in a YAML document. Aliases are followed only while the value is made into
// JSON, within limits: a few bytes of YAML could otherwise expand to gigabytes.
type yamlValue struct {
	node   *yaml.Node
	budget *int // steps left for the stream: nodes visited and bytes of JSON written
}

// parseYAML parses the only document in text. A nil value is an empty document.
func parseYAML(text []byte, budget *int) (v value, err error) {
	// The parser is large code of another project. A bug in it must not let an input end the agent.
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, fmt.Errorf("yaml: parser failed: %v", p)
		}
	}()
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}
	// A document with comments only, or with "null", has no content.
	if node.Kind != yaml.DocumentNode || len(node.Content) == 0 || node.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	return &yamlValue{node: node.Content[0], budget: budget}, nil
}

// line satisfies value.
func (v *yamlValue) line() int { return v.node.Line }

// header satisfies value.
func (v *yamlValue) header() (apiVersion, kind string, err error) {
	mapping := resolve(v.node)
	if mapping.Kind != yaml.MappingNode {
		return "", "", errNoMapping
	}
	for _, field := range []struct {
		key  string
		into *string
	}{{"apiVersion", &apiVersion}, {"kind", &kind}} {
		// A fixed order, so that the same input gives the same error.
		node := v.member(mapping, field.key)
		if *v.budget < 0 {
			return "", "", errTooLarge
		}
		if node == nil {
			continue
		}
		if node = resolve(node); node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
			return "", "", fmt.Errorf("%s: %w", field.key, errNoString)
		}
		*field.into = node.Value
	}
	return apiVersion, kind, nil
}

// names satisfies value.
func (v *yamlValue) names() (namespace, name string) {
	metadata := v.member(v.node, "metadata")
	for key, into := range map[string]*string{"namespace": &namespace, "name": &name} {
		if node := v.member(metadata, key); node != nil {
			*into = resolve(node).Value
		}
	}
	return namespace, name
}

// items satisfies value. The elements share the budget of the stream.
func (v *yamlValue) items() ([]value, error) {
	list := v.member(v.node, "items")
	if list == nil {
		return nil, nil
	}
	switch list = resolve(list); {
	case list.ShortTag() == "!!null":
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, errNoList
	}
	out := make([]value, len(list.Content))
	for i, node := range list.Content {
		out[i] = &yamlValue{node: node, budget: v.budget}
	}
	return out, nil
}

// resolve follows an alias; the parser has checked that its anchor exists.
func resolve(node *yaml.Node) *yaml.Node {
	// The parser makes no chains of aliases today. The bound makes a cycle harmless if it ever
	// does.
	for range maxDepth {
		if node.Kind != yaml.AliasNode {
			break
		}
		node = node.Alias
	}
	return node
}

// member returns the value of a key of a mapping, merged mappings included. It returns nil if the
// key is missing or the budget is used up.
func (v *yamlValue) member(node *yaml.Node, key string) *yaml.Node {
	if node == nil {
		return nil
	}
	if node = resolve(node); node.Kind != yaml.MappingNode {
		return nil
	}
	// An own key overrides a merged one, as YAML defines it.
	if found := v.own(node, key); found != nil {
		return found
	}
	merged := v.own(node, "<<")
	if merged == nil {
		return nil
	}
	merged = resolve(merged)
	sources := []*yaml.Node{merged}
	if merged.Kind == yaml.SequenceNode {
		sources = merged.Content
	}
	for _, source := range sources {
		if found := v.own(resolve(source), key); found != nil {
			return found
		}
	}
	return nil
}

// own returns the value of a key of a mapping itself.
func (v *yamlValue) own(node *yaml.Node, key string) *yaml.Node {
	for i := 0; node.Kind == yaml.MappingNode && i+1 < len(node.Content); i += 2 {
		if *v.budget--; *v.budget < 0 {
			return nil
		}
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// json satisfies value. Its steps count against the budget of the stream.
func (v *yamlValue) json() ([]byte, error) {
	// One object may use the limit of an object or the rest of the budget, whichever is less:
	// hostile objects share one budget.
	limit := max(0, min(maxObject, *v.budget))
	w := jsonWriter{left: limit}
	err := w.value(v.node, 0)
	*v.budget -= limit - w.left
	return w.out, err
}

// jsonWriter writes a node as JSON. It stops at maxDepth and when its budget is used up, so that
// aliases can neither expand without bound nor form an endless cycle.
type jsonWriter struct {
	out  []byte
	left int // steps: nodes visited and bytes written
}

// value writes any node. Every node costs one step, so that a cycle of empty nodes ends too.
func (w *jsonWriter) value(node *yaml.Node, depth int) error {
	if node = resolve(node); depth > maxDepth {
		return w.problem(node, errTooDeep)
	}
	if w.left--; w.left < 0 {
		return w.problem(node, errTooLarge)
	}
	switch node.Kind {
	case yaml.MappingNode:
		return w.mapping(node, depth)
	case yaml.SequenceNode:
		return w.sequence(node, depth)
	case yaml.ScalarNode:
		return w.scalar(node)
	}
	return w.problem(node, errNoContents)
}

// problem adds the line to an error.
func (w *jsonWriter) problem(node *yaml.Node, err error) error {
	return &lineError{line: node.Line, err: err}
}

// sequence writes a list.
func (w *jsonWriter) sequence(node *yaml.Node, depth int) error {
	w.out = append(w.out, '[')
	for i, element := range node.Content {
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

// mapping writes the members of a mapping, then the merged members that it does not override.
// Merges of merged mappings are not followed: they do not occur in practice, and a chain of them
// would cost time without bound.
func (w *jsonWriter) mapping(node *yaml.Node, depth int) error {
	w.out = append(w.out, '{')
	seen := make(map[string]bool, len(node.Content)/2)
	if err := w.members(node, depth, seen, false); err != nil {
		return err
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].ShortTag() == "!!merge" {
			if err := w.merge(node.Content[i+1], depth, seen); err != nil {
				return err
			}
		}
	}
	w.out = append(w.out, '}')
	return nil
}

// members writes the members of a mapping. A key that was seen before is an error in the mapping
// itself; in a merged mapping it is overridden.
func (w *jsonWriter) members(node *yaml.Node, depth int, seen map[string]bool, merged bool) error {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := resolve(node.Content[i])
		if w.left--; w.left < 0 {
			return w.problem(key, errTooLarge)
		}
		switch {
		case key.ShortTag() == "!!merge":
			continue
		case key.Kind != yaml.ScalarNode:
			return w.problem(key, errors.New("a key is not a string"))
		case seen[key.Value] && merged:
			continue
		case seen[key.Value]:
			return w.problem(key, fmt.Errorf("the key %.64q occurs twice", key.Value))
		}
		if w.out[len(w.out)-1] != '{' {
			w.out = append(w.out, ',')
		}
		seen[key.Value] = true
		if err := w.text(key.Value); err != nil {
			return w.problem(key, err)
		}
		w.out = append(w.out, ':')
		if err := w.value(node.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	return nil
}

// merge writes the members of the mapping, or mappings, at the key "<<". The first mapping wins.
func (w *jsonWriter) merge(node *yaml.Node, depth int, seen map[string]bool) error {
	node = resolve(node)
	if depth > maxDepth {
		return w.problem(node, errTooDeep)
	}
	if w.left--; w.left < 0 {
		return w.problem(node, errTooLarge)
	}
	switch node.Kind {
	case yaml.MappingNode:
		return w.members(node, depth+1, seen, true)
	case yaml.SequenceNode:
		for _, element := range node.Content {
			if err := w.merge(element, depth+1, seen); err != nil {
				return err
			}
		}
		return nil
	}
	return w.problem(node, errNoMapping)
}

// scalar writes a scalar. A date stays the text of the input, as everywhere in Kubernetes.
func (w *jsonWriter) scalar(node *yaml.Node) error {
	switch node.ShortTag() {
	case "!!null":
		w.out = append(w.out, "null"...)
		return nil
	case "!!bool", "!!int", "!!float":
		var number any
		if err := node.Decode(&number); err != nil {
			return w.problem(node, err)
		}
		// JSON has no form for .nan and .inf. json.Marshal would fail too, but its error would not
		// have the line.
		if f, ok := number.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return w.problem(node, fmt.Errorf("%.64q is not a number of JSON", node.Value))
		}
		return w.marshal(node, number)
	}
	if err := w.text(node.Value); err != nil {
		return w.problem(node, err)
	}
	return nil
}

// text writes a string if it fits into the budget, because many aliases of one large string expand
// fastest.
func (w *jsonWriter) text(s string) error {
	if w.left -= len(s); w.left < 0 {
		return errTooLarge
	}
	out, err := json.Marshal(s)
	w.out = append(w.out, out...)
	return err
}

// marshal writes a number or a boolean.
func (w *jsonWriter) marshal(node *yaml.Node, v any) error {
	out, err := json.Marshal(v)
	if err != nil {
		return w.problem(node, err)
	}
	w.out = append(w.out, out...)
	return nil
}

// lineError is a problem with a value in this line of its document.
type lineError struct {
	line int
	err  error
}

// Error satisfies error. The line is not part of the text: the caller knows where the document
// starts.
func (e *lineError) Error() string { return e.err.Error() }

// Unwrap returns the error without the line.
func (e *lineError) Unwrap() error { return e.err }
