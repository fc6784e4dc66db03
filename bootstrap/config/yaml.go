package config

//lint:file-ignore SA1019 the parser below is a type alias of go.yaml.in/yaml/v3; importing it here avoids one more direct dependency

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// maxSize limits a file, in bytes; a full configuration has 10 KB.
const maxSize = 1 << 20

// ParseYAML returns the root of the only document in data, YAML or JSON. The error names source,
// and kind if data is empty.
func ParseYAML(data []byte, source, kind string) (*yaml.Node, *FieldError) {
	fail := func(line int, format string, args ...any) (*yaml.Node, *FieldError) {
		return nil, &FieldError{Source: source, Line: line, Message: fmt.Sprintf(format, args...)}
	}
	if len(data) > maxSize {
		return fail(0, "is larger than %d bytes", maxSize)
	}
	stream := yaml.NewDecoder(bytes.NewReader(data))
	var root, more yaml.Node
	switch err := stream.Decode(&root); {
	case errors.Is(err, io.EOF):
		return fail(0, "is empty: expected apiVersion %s, kind %s", APIVersion, kind)
	case err != nil:
		line, text := syntax(err)
		return fail(line, "is not YAML: %s", text)
	}
	switch err := stream.Decode(&more); {
	case err == nil:
		return fail(more.Line, "has a second document: only one is expected")
	case !errors.Is(err, io.EOF):
		line, text := syntax(err)
		return fail(line, "is not YAML: %s", text)
	}
	return root.Content[0], nil
}

// syntax splits an error of the YAML parser, "yaml: line N: what"; line 0 = the error has none.
func syntax(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, what, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return n, what
			}
		}
	}
	return 0, text
}

// DescribeYAML describes a node of a file for an error message.
func DescribeYAML(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	default:
		return strconv.Quote(n.Value) + " (" + strings.TrimPrefix(n.Tag, "!!") + ")"
	}
}
