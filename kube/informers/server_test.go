package informers

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiServer lists and watches over HTTP, as a reflector needs it. It has Services, which are only
// added, and no objects of other kinds. It sends only the bookmark at the end of a list, like an
// API server without changes since its start.
type apiServer struct {
	mu       sync.Mutex
	services []*corev1.Service // the number of objects is the revision
	changed  chan struct{}     // closed by the next object
	asked    []string          // paths and queries
}

// kinds are the types that the server has, by the last part of their path.
var kinds = map[string]metav1.TypeMeta{
	"services": {APIVersion: "v1", Kind: "Service"}, "nodes": {APIVersion: "v1", Kind: "Node"}, "pods": {APIVersion: "v1", Kind: "Pod"},
	"endpointslices": {APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
}

func newAPIServer() *apiServer { return &apiServer{changed: make(chan struct{})} }

// add adds a service.
func (s *apiServer) add(service *corev1.Service) {
	s.mu.Lock()
	defer s.mu.Unlock()
	service.TypeMeta, service.ResourceVersion = kinds["services"], strconv.Itoa(len(s.services)+1)
	s.services = append(s.services, service)
	close(s.changed)
	s.changed = make(chan struct{})
}

// since returns the objects of a kind after a revision, the current revision, and a channel that
// the next object closes.
func (s *apiServer) since(plural string, revision int) (objects []*corev1.Service, now string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if plural == "services" {
		objects = slices.Clone(s.services[revision:])
	}
	return objects, strconv.Itoa(len(s.services)), s.changed
}

// requests returns the requests so far.
func (s *apiServer) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// ServeHTTP satisfies http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural := path.Base(r.URL.Path)
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.String())
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Has("watch") {
		s.stream(w, r, plural)
		return
	}
	objects, now, _ := s.since(plural, 0)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": kinds[plural].APIVersion, "kind": kinds[plural].Kind + "List", "metadata": map[string]string{"resourceVersion": now}, "items": objects,
	})
}

// stream answers a watch until its time is over or the client leaves.
func (s *apiServer) stream(w http.ResponseWriter, r *http.Request, plural string) {
	query, out := r.URL.Query(), json.NewEncoder(w)
	seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	revision, _ := strconv.Atoi(query.Get("resourceVersion"))
	initial := query.Get("sendInitialEvents") == "true"
	if initial {
		revision = 0
	}
	for {
		objects, now, changed := s.since(plural, revision)
		for _, object := range objects {
			_ = out.Encode(map[string]any{"type": "ADDED", "object": object})
		}
		if initial {
			_ = out.Encode(map[string]any{"type": "BOOKMARK", "object": map[string]any{
				"apiVersion": kinds[plural].APIVersion, "kind": kinds[plural].Kind,
				"metadata": metav1.ObjectMeta{ResourceVersion: now, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
			}})
		}
		_ = http.NewResponseController(w).Flush()
		initial = false
		revision, _ = strconv.Atoi(now)
		select {
		case <-changed:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}
