package events

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	clienttesting "k8s.io/client-go/testing"

	"github.com/troupe-vpp/troupe/kube/kubetest"
)

var (
	eventResource = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
	eventKind     = schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}
)

// apiServer is the fake clientset with additions: the validation of events, namespaces that are
// deleted, outages, and requests that are carried out without an answer.
type apiServer struct {
	*kubetest.Clientset

	mu       sync.Mutex
	requests []string // "verb name" of all requests
	missing  map[string]bool
	// before and after are called for each request. After an error of before the request is not
	// carried out; after an error of after only its answer is lost. Both may sleep.
	before, after func(verb, name string) error
}

func newAPIServer() *apiServer {
	s := &apiServer{
		Clientset: kubetest.NewClientset(),
		missing:   map[string]bool{},
	}
	s.PrependReactor("*", "events", s.react)
	return s
}

func (s *apiServer) react(action clienttesting.Action) (bool, runtime.Object, error) {
	name := ""
	var problems []string
	switch a := action.(type) {
	case clienttesting.CreateAction:
		e := a.GetObject().(*eventsv1.Event) //nolint:forcetypeassert // nothing else is created
		name, problems = e.Name, invalid(e, a.GetNamespace())
	default: // the test looks
		return clienttesting.ObjectReaction(s.Tracker)(action)
	}
	s.mu.Lock()
	s.requests = append(s.requests, action.GetVerb()+" "+name)
	before, after, gone := s.before, s.after, s.missing[action.GetNamespace()]
	s.mu.Unlock()
	if before != nil {
		if err := before(action.GetVerb(), name); err != nil {
			return true, nil, err
		}
	}
	if len(problems) > 0 {
		return true, nil, apierrors.NewInvalid(eventKind, name, nil)
	}
	if gone {
		return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, action.GetNamespace())
	}
	handled, object, err := clienttesting.ObjectReaction(s.Tracker)(action)
	if after != nil {
		if lost := after(action.GetVerb(), name); lost != nil {
			return true, nil, lost
		}
	}
	return handled, object, err
}

// invalid does the API server's checks of a new event (ValidateEventCreate of the core API).
func invalid(e *eventsv1.Event, namespace string) (problems []string) {
	check := func(ok bool, what string) {
		if !ok {
			problems = append(problems, what)
		}
	}
	check(len(validation.NameIsDNSSubdomain(e.Name, false)) == 0, "name")
	check(!e.EventTime.IsZero(), "eventTime")
	check(e.Type == "Normal" || e.Type == "Warning", "type")
	check(e.Namespace == namespace && (e.Namespace == e.Regarding.Namespace || e.Regarding.Namespace == "" && e.Namespace == "default"), "namespace")
	check(len(utilvalidation.IsQualifiedName(e.ReportingController)) == 0, "reportingController")
	check(e.ReportingInstance != "" && len(e.ReportingInstance) <= 128, "reportingInstance")
	check(e.Action != "" && len(e.Action) <= 128, "action")
	check(e.Reason != "" && len(e.Reason) <= 128, "reason")
	check(len(e.Note) <= 1024, "note")
	check(e.Series == nil, "series")
	return problems
}

// fail makes every request fail with this error before it is carried out. nil ends this.
func (s *apiServer) fail(err error) {
	s.answer(func(string, string) error { return err }, nil)
}

// answer sets the functions that are called for each request.
func (s *apiServer) answer(before, after func(verb, name string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before, s.after = before, after
}

// count returns the number of requests.
func (s *apiServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

// events returns the events of the server.
func (s *apiServer) events(t interface{ Fatal(...any) }) []eventsv1.Event {
	list, err := s.Events("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// lines returns the events of the server as text, ordered: "namespace/object reason note xNUMBER",
// with the number of occurrences that an instance has written.
func (s *apiServer) lines(t interface{ Fatal(...any) }) []string {
	type one struct{ namespace, object, reason, note, instance string }
	numbers := map[one]int{}
	for _, e := range s.events(t) {
		numbers[one{e.Namespace, e.Regarding.Name, e.Reason, e.Note, e.ReportingInstance}]++
	}
	var out []string
	for e, n := range numbers {
		out = append(out, fmt.Sprintf("%s/%s %s %s x%d", e.namespace, e.object, e.reason, e.note, n))
	}
	slices.Sort(out)
	return out
}

// expire removes all events, as if their time to live has passed.
func (s *apiServer) expire(t interface{ Fatal(...any) }) {
	for _, e := range s.events(t) {
		if err := s.Tracker.Delete(eventResource, e.Namespace, e.Name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheFakeServerRefusesWhatTheRealOneRefuses(t *testing.T) {
	good := func() *eventsv1.Event {
		e := event("boom")
		return (&known{id: identityOf(&e), first: begin}).object("troupe-n1")
	}
	if problems := invalid(good(), "default"); len(problems) > 0 {
		t.Fatalf("a good event: %v", problems)
	}
	for want, change := range map[string]func(*eventsv1.Event){
		"name":                func(e *eventsv1.Event) { e.Name = "A" },
		"eventTime":           func(e *eventsv1.Event) { e.EventTime = metav1.MicroTime{} },
		"type":                func(e *eventsv1.Event) { e.Type = "Error" },
		"namespace":           func(e *eventsv1.Event) { e.Regarding.Namespace = "other" },
		"reportingController": func(e *eventsv1.Event) { e.ReportingController = "" },
		"reportingInstance":   func(e *eventsv1.Event) { e.ReportingInstance = strings.Repeat("a", 129) },
		"action":              func(e *eventsv1.Event) { e.Action = "" },
		"reason":              func(e *eventsv1.Event) { e.Reason = "" },
		"note":                func(e *eventsv1.Event) { e.Note = strings.Repeat("a", 1025) },
		"series":              func(e *eventsv1.Event) { e.Series = &eventsv1.EventSeries{Count: 1} },
	} {
		e := good()
		change(e)
		if got := invalid(e, "default"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v", want, got)
		}
		s := newAPIServer()
		if _, err := s.Events("default").Create(t.Context(), e, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: the server says %v", want, err)
		}
	}
	e := good()
	e.Regarding.Namespace, e.Namespace = "", "kube-public"
	if got := invalid(e, "kube-public"); !slices.Equal(got, []string{"namespace"}) {
		t.Errorf("an object without a namespace: %v", got)
	}
}
