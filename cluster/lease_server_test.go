package cluster

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// leaseNamespace is the only namespace that exists.
const leaseNamespace = "troupe-system"

// errHangUp, returned by the function of Before, closes the connection without an answer.
var errHangUp = errors.New("hang up")

// bookmarkInterval is the time between two bookmarks in a watch; a real API
// server takes about a minute.
const bookmarkInterval = 100 * time.Millisecond

// event is one entry of the history.
type event struct {
	revision int64
	lease    *coordinationv1.Lease // for a deletion, the last state
	line     []byte                // of a watch
}

// leaseServer is an API server that has only Leases, over HTTP on loopback. It refuses the same
// requests as the real API server. These are a name that exists (409 AlreadyExists), another
// resource version (409 Conflict, also as a precondition of a deletion), missing objects and
// namespaces, invalid metadata, and watches from a compacted version (410 Gone). A change without
// an effect keeps the resource version. Watches get bookmarks. The stories in test/agent run the
// same clients against a real API server. All methods are safe for concurrent use.
type leaseServer struct {
	t       testing.TB
	address string
	serving *httptest.Server // nil while stopped

	mu        sync.Mutex
	revision  int64
	compacted int64
	leases    map[string]*coordinationv1.Lease
	history   []event
	changed   chan struct{} // closed by the next change
	requests  map[string]int
	before    func(verb string) error
}

// newLeaseServer makes a server and starts it.
func newLeaseServer(t testing.TB) *leaseServer {
	t.Helper()
	s := &leaseServer{
		t: t, address: "127.0.0.1:0", revision: 1, leases: map[string]*coordinationv1.Lease{}, changed: make(chan struct{}), requests: map[string]int{},
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// Start puts a stopped server back on the network.
func (s *leaseServer) Start() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatalf("listen: %v", err)
	}
	s.address = listener.Addr().String()
	s.serving = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	_ = s.serving.Listener.Close()
	s.serving.Listener = listener
	s.serving.Start()
}

// Stop breaks all connections and refuses new ones.
func (s *leaseServer) Stop() {
	if s.serving == nil {
		return
	}
	_ = s.serving.Listener.Close() // first, so that no watch comes after the others are broken
	s.serving.CloseClientConnections()
	s.serving.Close()
	s.serving = nil
}

// Break breaks all connections, of watches too.
func (s *leaseServer) Break() { s.serving.CloseClientConnections() }

// Client makes a client of the Leases of a namespace, with connections of its own.
func (s *leaseServer) Client(namespace string) *gentype.ClientWithList[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	s.t.Helper()
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	known := runtime.NewScheme()
	client, err := rest.RESTClientFor(&rest.Config{Host: "http://" + s.address, APIPath: "/apis", QPS: -1, Transport: transport, ContentConfig: rest.ContentConfig{
		ContentType: "application/json", GroupVersion: &coordinationv1.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(known).WithoutConversion(),
	}})
	if err := errors.Join(err, coordinationv1.AddToScheme(known)); err != nil {
		s.t.Fatalf("make client: %v", err)
	}
	return gentype.NewClientWithList("leases", client, runtime.NewParameterCodec(known), namespace,
		func() *coordinationv1.Lease { return &coordinationv1.Lease{} }, func() *coordinationv1.LeaseList { return &coordinationv1.LeaseList{} })
}

// Before sets a function that is called before each request, without any lock, with the verb of the
// request (create, patch, delete, list, watch). If it returns an error, this error is the answer.
func (s *leaseServer) Before(f func(verb string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Requests returns the number of requests by verb.
func (s *leaseServer) Requests(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[verb]
}

// serve answers one request.
func (s *leaseServer) serve(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/apis/coordination.k8s.io/v1/namespaces/")
	namespace, rest, _ := strings.Cut(rest, "/")
	resource, name, _ := strings.Cut(rest, "/")
	if !ok || resource != "leases" {
		fail(w, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method, group, "", "no such path: "+r.URL.Path, 0, true))
		return
	}
	verb := map[string]string{http.MethodGet: "list", http.MethodPost: "create", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	if r.URL.Query().Get("watch") != "" {
		verb = "watch"
	}
	s.mu.Lock()
	s.requests[verb]++
	before := s.before
	s.mu.Unlock()
	if before != nil {
		if err := before(verb); errors.Is(err, errHangUp) {
			panic(http.ErrAbortHandler)
		} else if err != nil {
			fail(w, err)
			return
		}
	}
	switch {
	case namespace != leaseNamespace && verb == "list":
		reply(w, &coordinationv1.LeaseList{})
	case namespace != leaseNamespace:
		fail(w, apierrors.NewNotFound(coordinationv1.Resource("namespaces"), namespace))
	case verb == "list":
		reply(w, s.list(r.URL.Query().Get("labelSelector"), r.URL.Query().Get("fieldSelector")))
	case verb == "watch":
		s.watch(w, r)
	default:
		lease, err := s.write(verb, name, r)
		switch {
		case err != nil:
			fail(w, err)
		case verb == "delete":
			reply(w, &metav1.Status{Status: metav1.StatusSuccess})
		default:
			reply(w, lease)
		}
	}
}

// list returns all Leases with the label, or the Lease that a field selector names.
func (s *leaseServer) list(label, field string) *coordinationv1.LeaseList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: version(s.revision)}}
	for _, lease := range s.leases {
		if has(lease, label) && (field == "" || field == "metadata.name="+lease.Name) {
			list.Items = append(list.Items, *lease)
		}
	}
	return list
}

// has reports whether a Lease has a label; "" = any Lease.
func has(lease *coordinationv1.Lease, label string) bool {
	_, ok := lease.Labels[label]
	return ok || label == ""
}

// watch streams events until the client leaves or the server stops.
func (s *leaseServer) watch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64)
	if err != nil {
		fail(w, apierrors.NewBadRequest("invalid resource version"))
		return
	}
	label := query.Get("labelSelector")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flusher, _ := w.(http.Flusher)
	flusher.Flush()
	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	send := func(line []byte) bool {
		_, err := w.Write(line)
		return err == nil
	}
	for {
		events, now, gone, changed := s.since(from)
		if gone {
			status := apierrors.NewResourceExpired("too old resource version: " + version(from)).Status()
			send(line("ERROR", &status))
			return
		}
		for _, e := range events {
			if has(e.lease, label) && !send(e.line) {
				return
			}
			from = e.revision
		}
		flusher.Flush()
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-ticker.C:
			mark := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version(now)}}
			if query.Get("allowWatchBookmarks") != "" && !send(line("BOOKMARK", mark)) {
				return
			}
		}
	}
}

// since returns the events after a version, the current version, and a channel that the next change
// closes. gone means that the events were compacted.
func (s *leaseServer) since(from int64) (events []event, now int64, gone bool, changed chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := sort.Search(len(s.history), func(i int) bool { return s.history[i].revision > from })
	return s.history[first:], s.revision, from < s.compacted, s.changed
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// reply answers with an object.
func reply(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(typed(object))
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if api := apierrors.APIStatus(nil); errors.As(err, &api) {
		status = api.Status()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(typed(&status))
}

// line is one line of a watch.
func line(kind string, object any) []byte {
	text, err := json.Marshal(map[string]any{"type": kind, "object": typed(object)})
	if err != nil {
		panic(err)
	}
	return append(text, '\n')
}

// typed returns a copy of an object with its kind, which clients need to decode it.
func typed(object any) any {
	switch o := object.(type) {
	case *coordinationv1.Lease:
		o = o.DeepCopy()
		o.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
		return o
	case *coordinationv1.LeaseList:
		o.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "LeaseList"}
		return o
	case *metav1.Status:
		o.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		return o
	default:
		return object
	}
}
