package events

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/troupe-vpp/troupe/kube/addresses"
)

// controller is the reporting controller of all events.
const controller = "troupe"

// Limits of the API server (validation of events.k8s.io/v1), in bytes.
const (
	mostNote     = 1024
	mostInstance = 128
	mostName     = 253
)

// instanceName is the reporting instance of a node. A name that is too long is cut and ends with a
// hash of the whole name.
func instanceName(node string) string {
	name := controller + "-" + node
	if len(name) <= mostInstance {
		return name
	}
	hash := digest(name)
	return name[:mostInstance-1-len(hash)] + "-" + hash
}

// namespaceOf returns the namespace of the events about an object; objects without a namespace have
// their events in "default".
func namespaceOf(o *Object) string {
	if o.Namespace == "" {
		return metav1.NamespaceDefault
	}
	return o.Namespace
}

// objectName returns the name of the API object of an event: the name of its subject and a hash of
// its identity and the number of the occurrence. All runs and nodes that write the same event use
// the same name.
func objectName(id *Event, instance string, occurrence int) string {
	if id.Shared {
		instance = ""
	}
	o := &id.Object
	hash := digest(o.Kind, o.Namespace, o.Name, o.UID, id.Type, id.Reason, id.Action, id.Note, strconv.FormatBool(id.Shared), instance, strconv.Itoa(occurrence))
	head := o.Name[:min(len(o.Name), mostName-1-len(hash))]
	name := strings.TrimRight(head, "-.") + "." + hash
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return controller + "." + hash // the name of the object is not valid for an event
	}
	return name
}

// digest is a short hash of texts.
func digest(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		// The length keeps "ab","c" apart from "a","bc".
		_, _ = h.Write(strconv.AppendInt(nil, int64(len(t)), 10))
		_, _ = h.Write([]byte(":" + t))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// trim makes a note acceptable to the API server: valid UTF-8 within the limit.
func trim(note string) string {
	note = strings.ToValidUTF8(note, "?")
	if len(note) <= mostNote {
		return note
	}
	const mark = "..."
	end := mostNote - len(mark)
	for !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end] + mark
}

// object makes the API object of an event.
func (k *known) object(instance string) *eventsv1.Event {
	o, version := &k.id.Object, "v1"
	if o.Kind == kindAddressPool {
		version = addresses.GroupVersion().String()
	}
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: objectName(&k.id, instance, k.occurrence), Namespace: namespaceOf(o)},
		EventTime:           metav1.NewMicroTime(k.first),
		ReportingController: controller,
		ReportingInstance:   instance,
		Action:              k.id.Action,
		Reason:              k.id.Reason,
		Regarding: corev1.ObjectReference{
			APIVersion: version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID),
		},
		Note: k.id.Note,
		Type: k.id.Type,
	}
}
