package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/kube/addresses"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/strictyaml"
	"github.com/troupe-vpp/troupe/messages"
)

// Decode reads a stream of YAML documents and JSON values (see the package documentation). name is
// the source in the errors. It reads on after every error and returns everything that could be
// read: objects is never nil and holds usable objects only. If an object occurs twice, its first
// occurrence counts.
func Decode(r io.Reader, name string) (objects *normalize.Objects, problems []*messages.ObjectError) {
	d := &decoder{source: name, objects: &normalize.Objects{}, seen: map[object]place{}, budget: maxObject}
	// An error of the stream itself (too large, not readable) belongs to no document. The
	// documents before it count.
	if err := split(r, d.document); err != nil {
		d.report("", "", "", "%v", err)
	}
	if d.dropped > 0 {
		d.problems = append(d.problems, &messages.ObjectError{Source: name, Message: fmt.Sprintf("%d more errors", d.dropped)})
	}
	return d.objects, d.problems
}

// object names an object by the kind and name of ObjectError.
type object struct{ kind, name string }

// decoder collects the objects and problems of a stream.
type decoder struct {
	source   string
	objects  *normalize.Objects
	problems []*messages.ObjectError
	dropped  int               // errors beyond maxErrors
	seen     map[object]place  // place of each object's first occurrence
	budget   strictyaml.Budget // for YAML
}

// place is the position of a value in the stream.
type place struct {
	document int
	first    int    // line of the first byte of the document in the stream
	item     string // "" or "items[3]"
	line     int    // of the value in its document
}

// String names the place as a user finds it: lines count from the start of the stream, not of the
// document.
func (p place) String() string {
	if p.item != "" {
		return fmt.Sprintf("document %d, line %d, %s", p.document, p.stream(p.line), p.item)
	}
	return fmt.Sprintf("document %d, line %d", p.document, p.stream(p.line))
}

// stream turns a line of the document into one of the stream.
func (p place) stream(line int) int { return p.first + line - 1 }

// report records a problem. Text from the input must be quoted.
func (d *decoder) report(kind, name, field, format string, args ...any) {
	if len(d.problems) >= maxErrors {
		d.dropped++
		return
	}
	d.problems = append(d.problems, &messages.ObjectError{
		Source: d.source, Kind: kind, Object: name, Field: field, Message: fmt.Sprintf(format, args...),
	})
}

// document decodes one document: JSON values, or one YAML value.
func (d *decoder) document(doc document) {
	where := place{document: doc.number, first: doc.line, line: 1}
	if doc.long {
		d.report("", where.String(), "", "the document is larger than %d MiB", maxDocument>>20)
		return
	}
	// JSON is YAML too, and the JSON parser is faster, needs no budget against aliases and
	// gives exact offsets for errors.
	if first := bytes.TrimSpace(doc.text); len(first) > 0 && first[0] == '{' {
		// YAML in flow style also starts with a brace. The JSON parser already fails at its
		// first value.
		if values, problem := parseJSON(doc.text); problem == nil || len(values) > 0 || looksLikeJSON(first) {
			for _, v := range values {
				d.value(v, where, maxLists)
			}
			if problem != nil {
				d.syntax(where, problem)
			}
			return
		}
	}
	d.budget.Grow(len(doc.text))
	roots, problem := strictyaml.Parse(doc.text)
	for _, root := range roots {
		// A document with "null" has no content.
		if root := root.Content[0]; root.ShortTag() != "!!null" {
			d.value(&yamlValue{root, &d.budget}, where, maxLists)
		}
	}
	if problem != nil {
		d.syntax(where, problem)
	}
}

// looksLikeJSON reports whether a quoted key follows the brace at the start of a text.
func looksLikeJSON(text []byte) bool {
	rest := bytes.TrimSpace(text[1:])
	return len(rest) > 0 && (rest[0] == '"' || rest[0] == '}')
}

// syntax reports a document that cannot be parsed.
func (d *decoder) syntax(where place, p *strictyaml.Problem) {
	where, text := where.of(p)
	d.report("", where.String(), "", "%s", text)
}

// of returns the place of an error in the value, and the text of the error.
func (p place) of(err error) (place, string) {
	problem := (*strictyaml.Problem)(nil)
	if !errors.As(err, &problem) {
		return p, err.Error()
	}
	if problem.Line > 0 {
		p.line = problem.Line
	}
	return p, problem.Message
}

// value decodes an object, or a List of objects. depth limits Lists within Lists.
func (d *decoder) value(v value, where place, depth int) {
	where.line = v.line()
	apiVersion, kind, err := v.header()
	if err != nil {
		_, text := where.of(err)
		d.report("", where.String(), "", "%s", text)
		return
	}
	switch {
	case kind == "" || apiVersion == "":
		d.report("", where.String(), "", "apiVersion or kind is missing")
	case isList(apiVersion, kind):
		d.list(v, where, depth, kind)
	default:
		d.object(v, where, apiVersion, kind)
	}
}

// itemKinds are the kinds of the items of typed lists. An API server leaves out the kind of such
// items.
var itemKinds = map[string]string{
	"ServiceList": normalize.KindService, "NodeList": normalize.KindNode, "PodList": normalize.KindPod,
	"EndpointSliceList": normalize.KindEndpointSlice, "ServiceCIDRList": normalize.KindServiceCIDR,
	"AddressPoolList": normalize.KindAddressPool, "List": "",
}

// versions are the supported API versions of each kind. The same kind in another group is another
// type.
var versions = map[string]string{
	normalize.KindService: "v1", normalize.KindNode: "v1", normalize.KindPod: "v1",
	normalize.KindEndpointSlice: "discovery.k8s.io/v1", normalize.KindServiceCIDR: "networking.k8s.io/v1",
	normalize.KindAddressPool: "troupe.dev/v1alpha1",
}

// isList reports whether the value is a List whose items may be needed; a list of another kind
// counts as one object.
func isList(apiVersion, kind string) bool {
	item, known := itemKinds[kind]
	return known && (item == "" && apiVersion == "v1" || item != "" && apiVersion == versions[item])
}

// list decodes the items of a List. The items of a typed list may leave out apiVersion and kind.
func (d *decoder) list(v value, where place, depth int, kind string) {
	items, err := v.items()
	if err != nil {
		_, text := where.of(err)
		d.report(kind, where.String(), "items", "%s", text)
	}
	prefix := where.item
	if prefix != "" {
		prefix += "."
	}
	// Items are decoded one by one: a bad item does not affect the others, and a List of a
	// whole cluster is not in memory twice.
	for i, item := range items {
		where.item = prefix + "items[" + strconv.Itoa(i) + "]"
		where.line = item.line()
		if depth == 0 {
			d.report(kind, where.String(), "", "%v", errTooDeep)
			return
		}
		apiVersion, itemKind, err := item.header()
		if err == nil && itemKinds[kind] != "" && apiVersion == "" && itemKind == "" {
			d.object(item, where, versions[itemKinds[kind]], itemKinds[kind])
			continue
		}
		d.value(item, where, depth-1)
	}
}

// object decodes one object of a supported kind and counts objects of other kinds.
func (d *decoder) object(v value, where place, apiVersion, kind string) {
	if versions[kind] != apiVersion {
		if versions[kind] != "" && versions[kind] != "v1" {
			// Without this report an object of an old version (v1beta1) would be ignored
			// silently.
			d.report(kind, where.String(), "apiVersion", "%.64q is not supported, want %s", apiVersion, versions[kind])
			return
		}
		d.objects.Ignored++
		return
	}
	raw, err := v.json()
	if err == nil {
		err = d.take(raw, where, kind)
	}
	if err != nil {
		d.undecodable(v, raw, where, kind, err)
	}
}

// undecodable reports an object that cannot be decoded, by its name if the name can be read.
func (d *decoder) undecodable(v value, raw []byte, where place, kind string, err error) {
	name, field := where.String(), ""
	// The name lets the source keep the last good value of exactly this object.
	if key, ok := nameOf(v, kind); ok {
		name = key
	}
	where, text := where.of(err)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		field = fieldAt(raw, wrong.Offset)
		text = fmt.Sprintf("is a %s, want %s", wrong.Value, wrong.Type)
	}
	d.report(kind, name, field, "%.200s (line %d)", text, where.stream(where.line))
}

// value is an object or a List somewhere in a document, YAML or JSON.
type value interface {
	// header returns apiVersion and kind. The error says that the value is no mapping, or that
	// one of the two is no string.
	header() (apiVersion, kind string, err error)
	// names returns metadata.namespace and metadata.name as far as they can be read, whatever
	// else is wrong with the value.
	names() (namespace, name string)
	// items returns the elements of the list at the key "items"; none if it is missing or null.
	items() ([]value, error)
	// json returns the value as JSON.
	json() ([]byte, error)
	// line returns the line of its first byte in its document, from 1.
	line() int
}

var (
	errNoMapping = errors.New("is not a mapping")
	errNoString  = errors.New("is not a string")
	errNoList    = errors.New("is not a list")
	errTooDeep   = errors.New("is nested too deeply")
	errTooLarge  = errors.New("is too large")
)

// Limits of one stream, beside the limits of strictyaml. They are far above what clusters hold and
// low enough that a hostile file cannot take the agent down.
const (
	maxStream   = 512 << 20 // bytes of a stream
	maxFile     = 128 << 20 // bytes of a file in the directory, which is read as a whole
	maxDocument = 64 << 20  // bytes of one document: a dump of a cluster is one document
	maxObject   = 4 << 20   // bytes of one object as JSON; etcd refuses more than 1.5 MiB
	maxLists    = 3         // nesting of Lists
	maxErrors   = 1000      // errors reported for one stream; the rest is counted
)

// take decodes and normalises one object of a supported kind and keeps it, unless it was seen
// before.
func (d *decoder) take(raw []byte, where place, kind string) error {
	o := d.objects
	switch kind {
	case normalize.KindService:
		return add(d, raw, where, kind, &corev1.Service{}, normalize.Service, &o.Services)
	case normalize.KindEndpointSlice:
		return add(d, raw, where, kind, &discoveryv1.EndpointSlice{}, normalize.EndpointSlice, &o.Slices)
	case normalize.KindNode:
		return add(d, raw, where, kind, &corev1.Node{}, normalize.Node, &o.Nodes)
	case normalize.KindPod:
		return add(d, raw, where, kind, &corev1.Pod{}, normalize.Pod, &o.Pods)
	case normalize.KindServiceCIDR:
		return add(d, raw, where, kind, &networkingv1.ServiceCIDR{}, normalize.ServiceCIDR, &o.ServiceCIDRs)
	case normalize.KindAddressPool:
		return add(d, raw, where, kind, &addresses.AddressPool{}, normalize.AddressPool, &o.AddressPools)
	}
	o.Ignored++
	return nil
}

// add is take for one kind: API is its API type, M its message.
func add[API metav1.Object, M comparable](
	d *decoder, raw []byte, where place, kind string, in API, convert func(string, API) (M, []*messages.ObjectError), into *[]M,
) error {
	if err := utiljson.Unmarshal(raw, in); err != nil {
		return err
	}
	// kubectl would apply an object without a namespace to the namespace of its context, which is
	// "default" unless configured.
	if normalize.Namespaced(kind) && in.GetNamespace() == "" {
		in.SetNamespace(metav1.NamespaceDefault)
	}
	id := object{kind, keyOf(kind, in.GetNamespace(), in.GetName())}
	// The first counts, so that an object appended by mistake does not replace one in use.
	if first, twice := d.seen[id]; twice {
		d.report(kind, id.name, "", "occurs twice: %s is ignored, %s counts", where, first)
		return nil
	}
	out, problems := convert(d.source, in)
	for _, p := range problems {
		d.report(p.GetKind(), p.GetObject(), p.GetField(), "%s (line %d)", p.GetMessage(), where.stream(where.line))
	}
	// An object with bad parts is kept: normalize has left the bad parts out.
	var none M
	// normalize leaves out finished pods without a problem; they count as ignored.
	if out == none {
		if len(problems) == 0 {
			d.objects.Ignored++
		}
		return nil
	}
	d.seen[id] = where
	*into = append(*into, out)
	return nil
}

// keyOf returns the name of an object in ObjectError and in the Store.
func keyOf(kind, namespace, name string) string {
	if !normalize.Namespaced(kind) {
		return name
	}
	return normalize.Key(namespace, name)
}

// nameOf returns the name of an object that cannot be decoded, if the name is valid.
func nameOf(v value, kind string) (string, bool) {
	namespace, name := v.names()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Label(namespace)) > 0 {
		return "", false
	}
	return keyOf(kind, namespace, name), true
}
