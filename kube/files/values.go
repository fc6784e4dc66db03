package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/troupe-vpp/troupe/kube/strictyaml"
)

// jsonValue is a value in a JSON document.
type jsonValue struct {
	raw   json.RawMessage
	start int // line in the document
}

// lines turns offsets in a text into line numbers; the offsets of successive calls must not
// decrease.
type lines struct {
	text         []byte
	offset, line int
}

// at returns the line of an offset, from 1.
func (l *lines) at(offset int) int {
	offset = max(l.offset, min(offset, len(l.text)))
	l.line += bytes.Count(l.text[l.offset:offset], []byte("\n"))
	l.offset = offset
	return l.line
}

// parseJSON returns the values of a document that holds one JSON value after the other. With an
// error it returns the values before the error too.
func parseJSON(doc []byte) ([]value, *strictyaml.Problem) {
	var out []value
	decoder := json.NewDecoder(bytes.NewReader(doc))
	count := lines{text: doc, line: 1}
	for {
		var raw json.RawMessage
		// A RawMessage only finds the end of the value: the object is decoded once, when
		// its kind is known.
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			offset := int(decoder.InputOffset())
			if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
				offset = int(syntax.Offset)
			}
			return out, &strictyaml.Problem{Line: count.at(offset), Message: "json: " + err.Error()}
		}
		out = append(out, &jsonValue{raw: raw, start: count.at(int(decoder.InputOffset()) - len(raw))})
	}
}

func (v *jsonValue) line() int { return v.start }

func (v *jsonValue) json() ([]byte, error) {
	if len(v.raw) > maxObject {
		return nil, errTooLarge
	}
	return v.raw, nil
}

// header satisfies value. The two fields are read raw, so that a wrong type differs from a missing
// field.
func (v *jsonValue) header() (apiVersion, kind string, err error) {
	if len(v.raw) == 0 || v.raw[0] != '{' {
		return "", "", errNoMapping
	}
	var header struct {
		APIVersion json.RawMessage `json:"apiVersion"`
		Kind       json.RawMessage `json:"kind"`
	}
	if err := utiljson.Unmarshal(v.raw, &header); err != nil {
		return "", "", err
	}
	// json.Unmarshal takes null for "": a missing field and null are reported alike.
	if len(header.APIVersion) > 0 && json.Unmarshal(header.APIVersion, &apiVersion) != nil {
		return "", "", fmt.Errorf("apiVersion: %w", errNoString)
	}
	if len(header.Kind) > 0 && json.Unmarshal(header.Kind, &kind) != nil {
		return "", "", fmt.Errorf("kind: %w", errNoString)
	}
	return apiVersion, kind, nil
}

func (v *jsonValue) names() (namespace, name string) {
	var object struct {
		Metadata struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	// json fills in the readable fields; the caller reports a better error.
	_ = utiljson.Unmarshal(v.raw, &object)
	return object.Metadata.Namespace, object.Metadata.Name
}

// items satisfies value. It walks the tokens, because only tokens give the position of an element.
func (v *jsonValue) items() ([]value, error) {
	decoder := json.NewDecoder(bytes.NewReader(v.raw))
	if _, err := decoder.Token(); err != nil { // the opening brace, header has seen it
		return nil, err
	}
	// "items" is usually last; the members before it are skipped without decoding.
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		if key == "items" {
			return v.elements(decoder)
		}
		if err := decoder.Decode(new(json.RawMessage)); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// elements reads the elements of the list at the position of the decoder.
func (v *jsonValue) elements(decoder *json.Decoder) ([]value, error) {
	switch token, err := decoder.Token(); {
	case err != nil:
		return nil, err
	case token == nil:
		return nil, nil
	case token != json.Delim('['):
		return nil, errNoList
	}
	var out []value
	count := lines{text: v.raw, line: v.start}
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return out, err
		}
		out = append(out, &jsonValue{raw: raw, start: count.at(int(decoder.InputOffset()) - len(raw))})
	}
	return out, nil
}

// fieldAt returns the path of the field at which a decoder stopped at the offset in an object, for
// example "spec.ports[0].port".
func fieldAt(object []byte, offset int64) string {
	decoder := json.NewDecoder(bytes.NewReader(object))
	path, _ := seek(decoder, "", offset)
	return path
}

// seek reads one value and returns the path of the value whose text reaches the offset: the value
// itself or one inside it.
func seek(decoder *json.Decoder, path string, offset int64) (string, bool) {
	token, err := decoder.Token()
	if err != nil {
		return "", true
	}
	open, isDelim := token.(json.Delim)
	if decoder.InputOffset() >= offset {
		return path, true
	}
	// A scalar that ends before the offset did not cause the failure.
	if !isDelim {
		return "", false
	}
	for i := 0; decoder.More(); i++ {
		element := path + "[" + strconv.Itoa(i) + "]"
		if open == '{' {
			key, err := decoder.Token()
			name, ok := key.(string)
			if err != nil || !ok {
				return "", true
			}
			element = name
			if path != "" {
				element = path + "." + name
			}
		}
		if found, done := seek(decoder, element, offset); done {
			return found, true
		}
	}
	_, err = decoder.Token() // the closing delimiter
	return "", err != nil
}

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
