package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// Types of events.
const (
	// Normal events inform.
	Normal = corev1.EventTypeNormal
	// Warning events need attention.
	Warning = corev1.EventTypeWarning
)

// Reasons of events. They must not change: alerts and scripts select events by their reason.
const (
	// ReasonFailedToRender means that VPP does not hold everything that the service needs, or that
	// no renderer can serve a special part of it.
	ReasonFailedToRender = "FailedToRender"
	// ReasonRendered means that VPP holds everything that the service needs, after a failure.
	ReasonRendered = "Rendered"
	// ReasonApproximated means that VPP serves the service, and serves a special request of it only
	// approximately. Such an event is Normal.
	ReasonApproximated = "Approximated"
	// ReasonConflictingExternalIP means that another service owns an address and port that this
	// service wants as well.
	ReasonConflictingExternalIP = "ConflictingExternalIP"
	// ReasonInvalidInput means that a field of the Service, or one of its slices, cannot be used.
	ReasonInvalidInput = "InvalidInput"
	// ReasonNameConflict means that the catalog connector needs the name of this Service, which
	// does not belong to the connector.
	ReasonNameConflict = "NameConflict"
	// ReasonIPAllocated and ReasonClearAssignment mean that a Service has got addresses of a pool,
	// and that it has lost some. ReasonAllocationFailed means that it lacks an address. MetalLB has
	// the same reasons.
	ReasonIPAllocated      = "IPAllocated"
	ReasonClearAssignment  = "ClearAssignment"
	ReasonAllocationFailed = "AllocationFailed"
	// ReasonLocalNotAlone means that a Service has become Local, and others have addresses of its
	// virtual router.
	ReasonLocalNotAlone = "LocalNotAlone"
	// ReasonPoolReady and ReasonPoolRefused are events of an AddressPool: whether it gives
	// addresses.
	ReasonPoolReady   = "PoolReady"
	ReasonPoolRefused = "PoolRefused"
	// ReasonQuarantined means that the actor of the service failed again and again, and the service
	// is in quarantine.
	ReasonQuarantined = "Quarantined"
	// ReasonRecovered means that a conflict, a quarantine or the failure of a listener is over.
	ReasonRecovered = "Recovered"
	// ReasonHealthCheckFailed means that spec.healthCheckNodePort cannot be served. kube-proxy has
	// the same reason.
	ReasonHealthCheckFailed = "FailedToStartServiceHealthcheck"
	// ReasonNodeHealthFailed means that the agent cannot serve the health of the node (port 10256).
	// kube-proxy has the same reason.
	ReasonNodeHealthFailed = "FailedToStartProxierHealthcheck"
	// ReasonStarting means that the agent of a node has started. kube-proxy has the same reason.
	ReasonStarting = "Starting"
	// ReasonVPPLost means that the agent of a node has no connection to VPP any more.
	ReasonVPPLost = "VPPLost"
	// ReasonRendererChosen says which renderer serves IPv4 on a node.
	ReasonRendererChosen = "RendererChosen"
	// ReasonAnswersLost is an event of the Node: services are in VPP, and their endpoints do not
	// answer.
	ReasonAnswersLost = "AnswersLost"
)

// Actions that the agent attempted.
const (
	actionStart   = "StartTroupe"
	actionResolve = "Resolve" // compute the view from the input
	actionRender  = "Render"  // bring the view into VPP
	actionListen  = "Listen"  // as kube-proxy
	actionConnect = "ConnectVPP"
	actionRun     = "Run" // run the actor of the service
)

// Object is the Kubernetes object of an event.
type Object struct {
	// Kind is "Service" or "Node", both of the API version v1, or "AddressPool".
	Kind string
	// Namespace is "" for a Node and an AddressPool.
	Namespace string
	Name      string
	// UID is the UID of the object: kubectl describe shows only events that carry it.
	UID string
}

// ServiceObject returns the Service of a key "namespace/name".
func ServiceObject(key, uid string) Object {
	namespace, name, _ := strings.Cut(key, "/")
	return Object{Kind: "Service", Namespace: namespace, Name: name, UID: uid}
}

// NodeObject returns a Node. Its UID in events is its name, as in events of the kubelet and
// kube-proxy, because kubectl describe looks for the name.
func NodeObject(name string) Object { return Object{Kind: "Node", Name: name, UID: name} }

const kindAddressPool = "AddressPool"

// AddressPoolObject returns an AddressPool.
func AddressPoolObject(name, uid string) Object {
	return Object{Kind: kindAddressPool, Name: name, UID: uid}
}

// String returns "Kind namespace/name" or "Kind name".
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Event is a change of an object, or a state in which the agent found it. Events that differ only
// in Standing are the same event.
type Event struct {
	// Object is the object that changed.
	Object Object
	// Type is Normal or Warning.
	Type string
	// Reason is one of the constants of this package: CamelCase, for machines.
	Reason string
	// Action is what was attempted, CamelCase.
	Action string
	// Note is one line for people; it is cut off at 1024 bytes.
	Note string
	// Standing marks a state, found for example after a start, that is not a change. The event is
	// written only if the API server does not have it.
	Standing bool
	// Shared marks an event that is the same on every node. One node writes it, once.
	Shared bool
}

// Recorder takes events. Record never blocks and any goroutine may call it.
type Recorder interface {
	// Record takes an event, or drops it if there are too many.
	Record(e Event)
}

// Started returns the event of an agent that starts.
func Started(node string) Event {
	return Event{Object: NodeObject(node), Type: Normal, Reason: ReasonStarting, Action: actionStart, Note: "troupe serves the services of node " + node}
}

// VPPLost returns the event of a node whose agent has lost VPP; why is one line.
func VPPLost(node, why string) Event {
	return Event{
		Object: NodeObject(node), Type: Warning, Reason: ReasonVPPLost, Action: actionConnect,
		Note: "troupe has lost VPP, changes of services wait for it: " + why,
	}
}

// RendererChosen returns the event of a node whose agent has chosen the renderer of IPv4.
func RendererChosen(node, choice string) Event {
	return Event{
		Object: NodeObject(node), Type: Normal, Reason: ReasonRendererChosen, Action: actionConnect,
		Note: "troupe serves " + choice,
	}
}

// VPPConnected returns the event of a node whose agent has VPP again.
func VPPConnected(node, version string) Event {
	return Event{
		Object: NodeObject(node), Type: Normal, Reason: ReasonRecovered, Action: actionConnect,
		Note: "troupe is connected to VPP " + version + " again",
	}
}

// Answers returns the event of a node on which answers of services do not come back; why is one
// line. With "" it is the event that they do again.
func Answers(node, why string) Event {
	e := Event{Object: NodeObject(node), Type: Warning, Reason: ReasonAnswersLost, Action: actionConnect, Note: why}
	if why == "" {
		e.Type, e.Reason, e.Note = Normal, ReasonRecovered, "answers of services come back again, or there are no new connections"
	}
	return e
}

// NodeHealth returns the event of a node whose health cannot be served at an address, with the text
// of kube-proxy. With a nil error it is the event that the health is served again.
func NodeHealth(node, address string, err error) Event {
	e := Event{Object: NodeObject(node), Type: Warning, Reason: ReasonNodeHealthFailed, Action: actionStart}
	if err == nil {
		e.Type, e.Reason, e.Note = Normal, ReasonRecovered, "proxier healthz is served on "+address+" again"
		return e
	}
	e.Note = fmt.Sprintf("failed to start proxier healthz on %s: %v", address, err)
	return e
}

// HealthCheck returns the event of a service whose health-check node port cannot be served, with
// the text of kube-proxy. With a nil error it is the event that the port is served again.
func HealthCheck(service Object, node string, port uint32, err error) Event {
	e := Event{Object: service, Type: Warning, Reason: ReasonHealthCheckFailed, Action: actionListen}
	key := service.Namespace + "/" + service.Name
	if err == nil {
		e.Type, e.Reason = Normal, ReasonRecovered
		e.Note = fmt.Sprintf("node %s serves healthcheck %q on port %d again", node, key, port)
		return e
	}
	e.Note = fmt.Sprintf("node %s failed to start healthcheck %q on port %d: %v", node, key, port, err)
	return e
}

// Quarantined returns the event of a service in quarantine; why is one line.
func Quarantined(service Object, node, why string) Event {
	return Event{
		Object: service, Type: Warning, Reason: ReasonQuarantined, Action: actionRun,
		Note: fmt.Sprintf("node %s ignores changes of this service for now and keeps serving its last state: %s", node, why),
	}
}

// Released returns the event of a service that works again after a quarantine.
func Released(service Object, node string) Event {
	return Event{
		Object: service, Type: Normal, Reason: ReasonRecovered, Action: actionRun,
		Note: fmt.Sprintf("node %s follows changes of this service again", node),
	}
}

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
