package strictyaml

//lint:file-ignore SA1019 the parser below is a type alias of go.yaml.in/yaml/v3; importing it here avoids one more direct dependency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// Node is a parsed value. Its line counts from 1.
type Node = yaml.Node

// Problem is one mistake in a document.
type Problem struct {
	// Line in the document, from 1; 0 = unknown.
	Line int
	// Path of the field, for example "etcd.endpoints[1]"; "" = the document as a whole.
	Path string
	// Message describes the mistake and the expected value. Texts of the document are quoted.
	Message string
}

// Error satisfies error: "line 7: etcd.endpoints[1]: message".
func (p *Problem) Error() string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if p.Line > 0 {
		text = fmt.Sprintf("line %d: %s", p.Line, text)
	}
	return text
}

// Parse returns the documents in data, each a node with its root as the only content. With a
// problem, which ends the parsing, it returns the documents before it.
func Parse(data []byte) (documents []*Node, problem *Problem) {
	// The parser is large code of another project. A bug in it must not let an input end the
	// process.
	defer func() {
		if p := recover(); p != nil {
			problem = &Problem{Message: fmt.Sprintf("is not YAML: the parser failed: %v", p)}
		}
	}()
	stream := yaml.NewDecoder(bytes.NewReader(data))
	for {
		document := new(Node)
		switch err := stream.Decode(document); {
		case errors.Is(err, io.EOF):
			return documents, nil
		case err != nil:
			return documents, syntax(data, err.Error())
		case len(document.Content) == 1:
			documents = append(documents, document)
		}
	}
}

var (
	// parserText splits a message of the parser.
	parserText = regexp.MustCompile(`(?s)^(?:yaml: )?(?:line (\d+): )?(.*)$`)
	// fromZero matches the messages in which the parser counts lines from 0.
	fromZero = regexp.MustCompile(`did not find expected (',' or|<|key|'-'|node content)`)
)

// syntax returns the problem for a message of the parser, "yaml: line N: what". At the end of data
// it is in the last line that has content.
func syntax(data []byte, message string) *Problem {
	parts := parserText.FindStringSubmatch(message)
	line, _ := strconv.Atoi(parts[1]) // digits only; "" and a number too large are 0
	if line > 0 && fromZero.MatchString(message) {
		line = min(line+1, 1+bytes.Count(bytes.TrimRight(data, " \r\n"), []byte("\n")))
	}
	return &Problem{Line: line, Message: fmt.Sprintf("is not YAML: %.200s", strings.ReplaceAll(parts[2], "\n", " "))}
}

// Describe describes a node in a message.
func Describe(n *Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		return quoted(n.Value) + " (" + strings.TrimPrefix(n.ShortTag(), "!!") + ")"
	}
}

// quoted returns the beginning of a text in quotes.
func quoted(text string) string { return fmt.Sprintf("%.64q", text) }

// isNull reports whether a node is null, or missing after its key.
func isNull(n *Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

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
