package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/files"
)

// Files is the store without Kubernetes: a directory with one YAML file for each Service and
// EndpointSlice, which an agent serves with --kube-source files:DIRECTORY. Other files in the
// directory are only read. A Service in them keeps its name and its addresses. Instances must not
// have the addresses of a Node in them, nor addresses of its pods.
//
// A new Service gets a cluster IP of each family from the pool. Its file keeps the cluster IPs. The
// version of an object is the hash of its file, so a file that was edited meanwhile is compared
// again, not overwritten. A file is replaced as a whole (kube/durable).
type Files struct {
	config Config
	log    *slog.Logger

	mu    sync.Mutex          // held while files are read and written
	files map[string]*file    // by path
	taken map[netip.Addr]bool // cluster IPs; nil = to be computed
	dirty bool                // files were written since they were last published

	published atomic.Pointer[view]
}

// file is one object.
type file struct {
	sum    [sha256.Size]byte
	object metav1.Object // Service, EndpointSlice or Node; nil = another kind, or unreadable
}

// view is the content of the files; it is not changed any more.
type view struct {
	seen    render.Observed
	policy  catalog.Policy
	listed  bool
	trouble string
}

var _ Store = (*Files)(nil)

// NewFiles returns a store. It reads nothing yet.
func NewFiles(config Config, log *slog.Logger) *Files {
	s := &Files{config: config, log: log, files: map[string]*file{}}
	s.published.Store(&view{})
	return s
}

// Run satisfies Store.
func (s *Files) Run(ctx context.Context, changed func()) error {
	files.Watch(ctx, filepath.Clean(s.config.Directory), files.DefaultPace(), s.log, func(bool) {
		if s.read() {
			changed()
		}
	}, nil, nil)
	return nil
}

// read reads the directory, and reports whether something has changed.
func (s *Files) read() (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.config.Directory)
	if err != nil {
		return s.publish(err.Error())
	}
	changed, s.dirty = s.dirty, false
	present, trouble := map[string]bool{}, ""
	for _, e := range entries {
		path := filepath.Join(s.config.Directory, e.Name())
		if strings.HasPrefix(e.Name(), ".") || filepath.Ext(path) != ".yaml" || e.IsDir() {
			continue
		}
		present[path] = true
		text, err := os.ReadFile(path)
		if err != nil {
			trouble = err.Error()
			continue
		}
		if f := s.files[path]; f == nil || f.sum != sha256.Sum256(text) {
			s.files[path] = decode(text)
			changed = true
		}
	}
	for path := range s.files {
		if !present[path] {
			delete(s.files, path)
			changed = true
		}
	}
	if changed {
		s.taken = nil
	}
	return s.publish(trouble) || changed
}

// publish makes the content of the files visible. It reports whether this is the first time, or
// whether the trouble has changed.
func (s *Files) publish(trouble string) (changed bool) {
	before := s.published.Load()
	now := &view{policy: s.config.Policy.Clone(), trouble: trouble, listed: before.listed || trouble == ""}
	for _, f := range s.files {
		switch object := f.object.(type) {
		case *corev1.Node:
			addNode(&now.policy, object)
		case *corev1.Service:
			if object.Namespace == s.config.Namespace {
				now.seen.Services = append(now.seen.Services, object)
			}
		case *discoveryv1.EndpointSlice:
			if object.Namespace == s.config.Namespace {
				now.seen.Slices = append(now.seen.Slices, object)
			}
		}
	}
	s.published.Store(now)
	return now.trouble != before.trouble || now.listed != before.listed
}

// decode reads an object. The connector ignores other kinds, and unreadable files.
func decode(text []byte) *file {
	f := &file{sum: sha256.Sum256(text)}
	var head metav1.TypeMeta
	kinds := map[string]metav1.Object{"Service": &corev1.Service{}, "EndpointSlice": &discoveryv1.EndpointSlice{}, "Node": &corev1.Node{}}
	if yaml.Unmarshal(text, &head) != nil {
		return f
	}
	if object := kinds[head.Kind]; object != nil && yaml.Unmarshal(text, object) == nil {
		object.SetResourceVersion(f.version())
		f.object = object
	}
	return f
}

func (f *file) version() string { return hex.EncodeToString(f.sum[:8]) }

// Observe satisfies Store.
func (s *Files) Observe() (seen render.Observed, policy catalog.Policy, ok bool) {
	v := s.published.Load()
	return v.seen, v.policy, v.listed
}

// Trouble satisfies Store.
func (s *Files) Trouble() string { return s.published.Load().trouble }

// Write satisfies Store.
func (s *Files) Write(_ context.Context, w render.Write) (*corev1.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Service == nil {
		return nil, s.write(w.Verb, "endpointslice-"+w.Slice.Name, w.Slice.DeepCopy())
	}
	made := w.Service.DeepCopy()
	if w.Verb == render.Create && made.Spec.ClusterIP != corev1.ClusterIPNone {
		if err := s.address(made); err != nil {
			return nil, &WriteError{Reason: WriteUnavailable, Err: fmt.Errorf("create Service %s: %w", made.Name, err)}
		}
	}
	return made, s.write(w.Verb, "service-"+made.Name, made)
}

// write replaces or removes the file of an object if it has not changed since the comparison. A new
// object gets its UID.
func (s *Files) write(verb render.Verb, name string, object metav1.Object) error {
	s.dirty = true // the event of the file leads to a read and a publish
	path := filepath.Join(s.config.Directory, name+".yaml")
	fail := func(reason WriteReason, err error) error {
		return &WriteError{Reason: reason, Err: fmt.Errorf("%s %s: %w", verb, path, err)}
	}
	text, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return fail(WriteUnavailable, err)
	case verb == render.Create && !missing:
		return fail(WriteExists, fs.ErrExist)
	case verb == render.Update && missing, verb != render.Create && !missing && decode(text).version() != object.GetResourceVersion():
		return fail(WriteConflict, errors.New("the file has changed"))
	case verb == render.Delete:
		if !missing {
			if err := durable.Remove(durable.Disk{}, path); err != nil {
				return fail(WriteUnavailable, err)
			}
		}
		delete(s.files, path)
		return nil
	}
	object.SetResourceVersion("")
	if object.GetUID() == "" {
		object.SetUID(types.UID(strings.ToLower(rand.Text())))
	}
	if text, err = yaml.Marshal(object); err != nil {
		return fail(WriteInvalid, err)
	}
	if err := durable.Replace(durable.Disk{}, path, text); err != nil {
		return fail(WriteUnavailable, err)
	}
	s.files[path] = decode(text)
	return nil
}

// address gives a Service a cluster IP of each network of the pool.
func (s *Files) address(service *corev1.Service) error {
	if s.taken == nil {
		s.taken = map[netip.Addr]bool{}
		for _, f := range s.files {
			if service, is := f.object.(*corev1.Service); is {
				s.take(service)
			}
		}
	}
	for _, network := range s.config.Pool {
		ip := network.Masked().Addr().Next()
		for s.taken[ip] {
			ip = ip.Next()
		}
		if last := ip.Next(); !network.Contains(ip) || ip.Is4() && !network.Contains(last) {
			// The last address of an IPv4 network is the broadcast address.
			return fmt.Errorf("no address of %s is free", network)
		}
		family := corev1.IPv4Protocol
		if ip.Is6() {
			family = corev1.IPv6Protocol
		}
		service.Spec.ClusterIPs = append(service.Spec.ClusterIPs, ip.String())
		service.Spec.IPFamilies = append(service.Spec.IPFamilies, family)
	}
	service.Spec.ClusterIP = service.Spec.ClusterIPs[0]
	s.take(service)
	return nil
}

// take marks the cluster IPs of a Service as taken.
func (s *Files) take(service *corev1.Service) {
	for _, text := range append(slices.Clone(service.Spec.ClusterIPs), service.Spec.ClusterIP) {
		if ip, err := netip.ParseAddr(text); err == nil {
			// The agent reports texts that are no address.
			s.taken[ip] = true
		}
	}
}
