package informers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// apiServer lists and watches over HTTP, as far as a reflector needs it.
type apiServer struct {
	mu       sync.Mutex
	log      []entry       // the revision of an entry is its index plus 1
	changed  chan struct{} // closed by the next entry
	asked    []string      // paths and queries
	bookmark time.Duration // between two bookmarks; 0 = none, as of a resource that has not changed since the start of the server
}

// entry is an object that was added.
type entry struct {
	plural string
	object metav1.Object
}

// kinds are the types that a server has, by the last part of their path.
var kinds = map[string]metav1.TypeMeta{
	"services": {APIVersion: "v1", Kind: "Service"}, "nodes": {APIVersion: "v1", Kind: "Node"}, "pods": {APIVersion: "v1", Kind: "Pod"},
	"endpointslices": {APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
}

func newAPIServer() *apiServer { return &apiServer{changed: make(chan struct{})} }

// add adds an object.
func (s *apiServer) add(plural string, object metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, entry{plural, object})
	object.SetResourceVersion(strconv.Itoa(len(s.log)))
	close(s.changed)
	s.changed = make(chan struct{})
}

// since returns what was added to a resource after a revision, the revision of now, and what the next entry closes.
func (s *apiServer) since(plural string, revision int) (objects []metav1.Object, now int, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.log[min(revision, len(s.log)):] {
		if e.plural == plural {
			objects = append(objects, e.object)
		}
	}
	return objects, len(s.log), s.changed
}

// ServeHTTP satisfies http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural, query := path.Base(r.URL.Path), r.URL.Query()
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.String())
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if query.Get("watch") == "" {
		objects, now, _ := s.since(plural, 0)
		kind := kinds[plural]
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": kind.APIVersion, "kind": kind.Kind + "List", "metadata": map[string]string{"resourceVersion": strconv.Itoa(now)}, "items": objects,
		})
		return
	}
	w.WriteHeader(http.StatusOK)
	s.stream(w, r, plural)
}

// stream answers a watch until its time is over or the client goes.
func (s *apiServer) stream(w http.ResponseWriter, r *http.Request, plural string) {
	query := r.URL.Query()
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	revision, _ := strconv.Atoi(query.Get("resourceVersion"))
	initial := query.Get("sendInitialEvents") == "true"
	if initial {
		revision = 0
	}
	var ticks <-chan time.Time
	if s.bookmark > 0 {
		ticker := time.NewTicker(s.bookmark)
		defer ticker.Stop()
		ticks = ticker.C
	}
	for {
		objects, now, changed := s.since(plural, revision)
		for _, object := range objects {
			event(w, "ADDED", plural, object)
		}
		if initial {
			event(w, "BOOKMARK", plural, &metav1.ObjectMeta{ResourceVersion: strconv.Itoa(now), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}})
		}
		revision, initial = now, false
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-ticks:
			event(w, "BOOKMARK", plural, &metav1.ObjectMeta{ResourceVersion: strconv.Itoa(now)})
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// event writes an event of a watch.
func event(w http.ResponseWriter, kind, plural string, object metav1.Object) {
	switch o := object.(type) {
	case *corev1.Service:
		o.TypeMeta = kinds[plural]
	case *corev1.Node:
		o.TypeMeta = kinds[plural]
	case *corev1.Pod:
		o.TypeMeta = kinds[plural]
	case *discoveryv1.EndpointSlice:
		o.TypeMeta = kinds[plural]
	case *metav1.ObjectMeta:
		_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, encoded(map[string]any{"apiVersion": kinds[plural].APIVersion, "kind": kinds[plural].Kind, "metadata": o}))
		return
	}
	_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, encoded(object))
}

func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

var _ runtime.Object = (*corev1.Service)(nil)
