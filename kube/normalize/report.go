package normalize

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/troupe-vpp/troupe/messages"
)

// mostErrors is the largest number of recorded problems of one object. The last record counts the
// rest, because a slice of 1000 bad endpoints is one mistake.
const mostErrors = 20

// report collects the problems of one object.
type report struct {
	source, kind, object string
	errors               []*messages.ObjectError
	more                 int // problems counted by the last record
}

// add records a problem with the field of this path. Values from the input must go through show.
func (r *report) add(field, format string, args ...any) {
	if len(r.errors) == mostErrors {
		r.more++
		r.errors[mostErrors-1] = &messages.ObjectError{
			Source: r.source, Kind: r.kind, Object: r.object, Message: fmt.Sprintf("%d more problems", r.more+1),
		}
		return
	}
	r.errors = append(r.errors, &messages.ObjectError{
		Source: r.source, Kind: r.kind, Object: r.object, Field: field, Message: fmt.Sprintf(format, args...),
	})
}

// show quotes and shortens a value from the input, so that hostile input can neither forge a log
// line nor fill the log.
func show(value string) string {
	const limit = 64
	if len(value) > limit {
		return fmt.Sprintf("%q...", value[:limit])
	}
	return fmt.Sprintf("%q", value)
}

// at returns the path of an element of a list.
func at(list string, index int) string { return fmt.Sprintf("%s[%d]", list, index) }

// identify checks the names of an object. An object without a valid name is not delivered, because
// its key could be the key of another object.
func (r *report) identify(namespaced bool, namespace, name string) bool {
	r.object = name
	if namespaced {
		r.object = Key(namespace, name)
	}
	ok := true
	if namespaced && len(validation.IsDNS1123Label(namespace)) > 0 {
		ok = false
		r.add("metadata.namespace", "%s is not a namespace", show(namespace))
	}
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		ok = false
		r.add("metadata.name", "%s is not a name", show(name))
	}
	// An invalid name may contain anything, so it goes into logs and JSON only quoted.
	if !ok {
		r.object = show(r.object)
		for _, e := range r.errors {
			e.Object = r.object
		}
	}
	return ok
}
