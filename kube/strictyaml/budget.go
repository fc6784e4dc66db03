package strictyaml

import (
	"slices"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

const (
	maxDepth = 100 // nesting of a value
	// Steps for each byte of a document. Without aliases a document needs at most two.
	work = 4
)

// Budget counts the steps that are left for reading a stream: one for each visited node, one for
// each byte of JSON. It bounds what aliases and merges make of a small document. It is used up when
// it is negative. A nil Budget has no bound and neither aliases nor merges.
type Budget int

// Grow adds the steps for a document of so many bytes. A hostile document before it does not reduce
// them.
func (b *Budget) Grow(bytes int) { *b = max(0, *b) + Budget(work*bytes) }

// Size returns the steps for reading a value without aliases by a Decoder.
func Size(n *Node) Budget {
	size := Budget(1)
	for _, inner := range n.Content {
		size += Size(inner)
	}
	return size
}

// take uses up steps; it returns false when they are not there.
func (b *Budget) take(steps int) bool {
	if b == nil {
		return true
	}
	*b -= Budget(steps)
	return *b >= 0
}

// tooLarge is the problem of a node for which no steps are left.
func tooLarge(n *Node) *Problem { return &Problem{Line: n.Line, Message: "is too large"} }

// Resolve follows an alias; the parser has checked that its anchor exists.
func Resolve(n *Node) *Node {
	// The parser makes no chains of aliases today. The bound makes a cycle harmless if it ever
	// does.
	for range maxDepth {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	return n
}

// Find returns the first values of the keys in a mapping, nil for a missing key. It fails if n is
// no mapping, or if the budget is used up. It ignores other mistakes in the mapping.
func (b *Budget) Find(n *Node, keys ...string) ([]*Node, error) {
	found := make([]*Node, len(keys))
	n = Resolve(n)
	if n.Kind != yaml.MappingNode {
		return found, &Problem{Line: n.Line, Message: "is not a mapping"}
	}
	_ = b.members(n, nil, func(key, value *Node, _ bool) error {
		if i := slices.Index(keys, key.Value); i >= 0 && found[i] == nil {
			found[i] = Resolve(value)
		}
		return nil
	})
	if *b < 0 {
		return found, tooLarge(n)
	}
	return found, nil
}

// members calls each with the members of a mapping, then with the merged members that it does not
// override. again says that the mapping itself had the key before. seen is an empty map for the
// keys; if it is nil, each gets every member. Merges of merged mappings are not followed: they do
// not occur in practice, and a chain of them would cost time without bound.
func (b *Budget) members(n *Node, seen map[string]bool, each func(key, value *Node, again bool) error) error {
	if err := b.own(n, seen, false, each); err != nil || b == nil {
		return err
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			if err := b.merge(n.Content[i+1], 0, seen, each); err != nil {
				return err
			}
		}
	}
	return nil
}

// own is members for the members of the mapping itself, or of a merged one.
func (b *Budget) own(n *Node, seen map[string]bool, merged bool, each func(key, value *Node, again bool) error) error {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if b != nil {
			if key.ShortTag() == "!!merge" {
				continue
			}
			key = Resolve(key)
		}
		again := key.Kind == yaml.ScalarNode && seen[key.Value]
		switch {
		case !b.take(1):
			return tooLarge(key)
		case again && merged:
			continue
		}
		if seen != nil {
			seen[key.Value] = true
		}
		if err := each(key, n.Content[i+1], again); err != nil {
			return err
		}
	}
	return nil
}

// merge is members for the value of the key "<<": a mapping or a list of mappings, of which the
// first wins.
func (b *Budget) merge(n *Node, depth int, seen map[string]bool, each func(key, value *Node, again bool) error) error {
	n = Resolve(n)
	switch {
	case depth > maxDepth:
		return &Problem{Line: n.Line, Message: "is nested too deeply"}
	case !b.take(1):
		return tooLarge(n)
	case n.Kind == yaml.MappingNode:
		return b.own(n, seen, true, each)
	case n.Kind != yaml.SequenceNode:
		return &Problem{Line: n.Line, Message: "is not a mapping"}
	}
	for _, element := range n.Content {
		if err := b.merge(element, depth+1, seen, each); err != nil {
			return err
		}
	}
	return nil
}
