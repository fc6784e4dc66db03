package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// protobuf is the encoding of every answer of a feed that has objects.
const protobuf = "application/vnd.kubernetes.protobuf"

// The paths of what changes.
const (
	servicesPath = "/api/v1/services"
	slicesPath   = "/apis/discovery.k8s.io/v1/endpointslices"
)

// feed is the read side of an API server, in this process: it streams its objects and their changes
// to watches, and has no other request. So it costs next to nothing, and can change thousands of
// objects a second.
type feed struct {
	kubeconfig string
	server     http.Server
	slices     []*discoveryv1.EndpointSlice
	watched    map[string]*collection // by path
	of         *collection            // of the slices
}

// collection is all objects of one kind. Its version is one more than the number of changes.
type collection struct {
	empty runtime.Object // of the kind
	first [][]byte       // an event for each object as it was at first

	mu      sync.Mutex
	changes [][]byte      // an event for each change
	more    chan struct{} // closed at the next change
}

// newFeed starts a feed with a node and so many services, of both families with dual.
func newFeed(dir string, services int, dual bool) (*feed, error) {
	f := &feed{kubeconfig: filepath.Join(dir, "kubeconfig"), watched: map[string]*collection{}}
	var all, slices []runtime.Object
	for i := range services {
		s := serviceOf(i)
		s.Spec.ClusterIP = clusterIP(i)
		s.Spec.ClusterIPs, s.Spec.IPFamilies = []string{s.Spec.ClusterIP}, []corev1.IPFamily{corev1.IPv4Protocol}
		f.slices = append(f.slices, sliceOf(i))
		all, slices = append(all, s), append(slices, f.slices[i])
		if dual {
			s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, sixth("fd00:96::", s.Spec.ClusterIP))
			s.Spec.IPFamilies = append(s.Spec.IPFamilies, corev1.IPv6Protocol)
			slices = append(slices, sixSliceOf(i))
		}
	}
	err := errors.Join(
		f.serve(servicesPath, &corev1.Service{}, all),
		f.serve("/api/v1/nodes", &corev1.Node{}, []runtime.Object{thisNode()}),
		f.serve("/api/v1/pods", &corev1.Pod{}, nil),
		f.serve("/apis/networking.k8s.io/v1/servicecidrs", &networkingv1.ServiceCIDR{}, nil),
		f.serve(slicesPath, &discoveryv1.EndpointSlice{}, slices))
	if err != nil {
		return nil, err
	}
	f.of = f.watched[slicesPath]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the agent: %w", err)
	}
	f.server.Handler = f
	go func() { _ = f.server.Serve(listener) }()
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: feed, users: [],
contexts: [{name: feed, context: {cluster: feed}}], clusters: [{name: feed, cluster: {server: "http://%s"}}]}`
	return f, os.WriteFile(f.kubeconfig, fmt.Appendf(nil, kubeconfig, listener.Addr()), 0o600)
}

// serve makes objects of a kind known at a path.
func (f *feed) serve(path string, empty runtime.Object, objects []runtime.Object) error {
	c := &collection{empty: empty, more: make(chan struct{})}
	for _, o := range objects {
		event, err := encode(watch.Added, o, 1)
		if err != nil {
			return err
		}
		c.first = append(c.first, event)
	}
	f.watched[path] = c
	return nil
}

// encode returns an event as a watch sends it; the version of the object becomes this one.
func encode(kind watch.EventType, object runtime.Object, version int) ([]byte, error) {
	object.(metav1.Object).SetResourceVersion(strconv.Itoa(version))
	gvks, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), protobuf)
	inner, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, gvks[0].GroupVersion()), object)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	outer, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, gvks[0].GroupVersion()),
		&metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: inner}})
	if err != nil {
		return nil, fmt.Errorf("encode event of %T: %w", object, err)
	}
	var frame bytes.Buffer
	_, err = info.StreamSerializer.Framer.NewFrameWriter(&frame).Write(outer)
	return frame.Bytes(), err
}

// ServeHTTP answers a watch. Other requests are not found, except for the version.
func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/version" {
		_, _ = io.WriteString(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}`)
		return
	}
	c, query := f.watched[r.URL.Path], r.URL.Query()
	if c == nil || query.Get("watch") == "" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", protobuf+";stream=watch")
	at, _ := strconv.Atoi(query.Get("resourceVersion"))
	if query.Get("sendInitialEvents") == "true" {
		at = 1
		end := c.empty.DeepCopyObject()
		end.(metav1.Object).SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		bookmark, err := encode(watch.Bookmark, end, at)
		if err != nil || send(w, append(c.first[:len(c.first):len(c.first)], bookmark)) != nil {
			return
		}
	}
	c.follow(r.Context(), w, at-1)
}

// follow sends all changes after so many.
func (c *collection) follow(ctx context.Context, w http.ResponseWriter, sent int) {
	for {
		c.mu.Lock()
		changes, more := c.changes[sent:], c.more
		c.mu.Unlock()
		if send(w, changes) != nil {
			return
		}
		sent += len(changes)
		select {
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// send writes events at once.
func send(w http.ResponseWriter, events [][]byte) error {
	for _, event := range events {
		if _, err := w.Write(event); err != nil {
			return err
		}
	}
	return http.NewResponseController(w).Flush()
}

// replace gives the first endpoint of a service another address. Only one goroutine may call it.
func (f *feed) replace(_ context.Context, service int, address string) error {
	slice := f.slices[service]
	slice.Endpoints[0].Addresses[0] = address
	return f.change(f.of, slice)
}

// change tells all watches what an object is now, or that it is new.
func (f *feed) change(c *collection, object runtime.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	event, err := encode(watch.Modified, object, len(c.changes)+2)
	if err != nil {
		return err
	}
	c.changes = append(c.changes, event)
	close(c.more)
	c.more = make(chan struct{})
	return nil
}

// arguments are those of an agent that reads this feed.
func (f *feed) arguments() ([]string, error) { return []string{"--kubeconfig", f.kubeconfig}, nil }

// credentials satisfies server.
func (f *feed) credentials(string) (kubeconfig string, err error) { return f.kubeconfig, nil }

// close ends all requests.
func (f *feed) close() { _ = f.server.Close() }
