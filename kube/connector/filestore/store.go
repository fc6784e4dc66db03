// Package filestore is the connector's Store without Kubernetes: a directory with one YAML file for
// each Service and EndpointSlice, which an agent serves with --kube-source files:DIRECTORY. Other
// files in the directory are only read. A Service in them keeps its name and its addresses.
// Instances must not have the addresses of a Node in them, nor addresses of its pods.
//
// A new Service gets a cluster IP of each family from the pool. Its file keeps the cluster IPs. The
// version of an object is the hash of its file, so a file that was edited meanwhile is compared
// again, not overwritten. A file is replaced as a whole (kube/durable).
//
// Run reads the files when they change, and must be called once; Observe and Write may be called by
// any goroutine.
package filestore

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

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/kube/connector"
	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/files/watch"
)

// Config of a Store.
type Config struct {
	// Directory of the files. It must exist.
	Directory string
	// Namespace of the objects.
	Namespace string
	// Pool has the cluster IPs; at most one network of each family.
	Pool []netip.Prefix
	// Policy is the configured part of the policy, beside the Node objects in the directory.
	Policy catalog.Policy
}

// Store is a connector.Store in a directory.
type Store struct {
	config Config
	log    *slog.Logger

	mu    sync.Mutex          // held while files are read and written
	files map[string]*file    // by path
	taken map[netip.Addr]bool // cluster IPs; nil = to be computed
	dirty bool                // files were written since they were last published

	view    sync.Mutex // guards the published state, held for a moment
	seen    render.Observed
	policy  catalog.Policy
	listed  bool
	trouble string
}

// file is one object.
type file struct {
	sum     [sha256.Size]byte
	service *corev1.Service // at most one of them is set
	slice   *discoveryv1.EndpointSlice
	node    *corev1.Node
}

var _ connector.Store = (*Store)(nil)

// New returns a store. It reads nothing yet.
func New(config Config, log *slog.Logger) *Store {
	return &Store{config: config, log: log, files: map[string]*file{}}
}

// Run satisfies connector.Store.
func (s *Store) Run(ctx context.Context, changed func()) error {
	watch.Run(ctx, filepath.Clean(s.config.Directory), watch.DefaultPace(), s.log, func(bool) {
		if s.read() {
			changed()
		}
	}, nil, nil)
	return nil
}

// read reads the directory, and reports whether something has changed.
func (s *Store) read() (changed bool) {
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
func (s *Store) publish(trouble string) (changed bool) {
	var seen render.Observed
	policy := s.config.Policy.Clone()
	for _, f := range s.files {
		switch {
		case f.service != nil && f.service.Namespace == s.config.Namespace:
			seen.Services = append(seen.Services, f.service)
		case f.slice != nil && f.slice.Namespace == s.config.Namespace:
			seen.Slices = append(seen.Slices, f.slice)
		case f.node != nil:
			connector.AddNode(&policy, f.node)
		}
	}
	s.view.Lock()
	defer s.view.Unlock()
	changed = s.trouble != trouble || !s.listed && trouble == ""
	s.seen, s.policy, s.trouble, s.listed = seen, policy, trouble, s.listed || trouble == ""
	return changed
}

// decode reads an object. The connector ignores other kinds than Service, EndpointSlice and Node,
// and unreadable files.
func decode(text []byte) *file {
	f := &file{sum: sha256.Sum256(text)}
	var head metav1.TypeMeta
	if yaml.Unmarshal(text, &head) != nil {
		return f
	}
	switch head.Kind {
	case "Service":
		if object := (&corev1.Service{}); yaml.Unmarshal(text, object) == nil {
			object.ResourceVersion = f.version()
			f.service = object
		}
	case "EndpointSlice":
		if object := (&discoveryv1.EndpointSlice{}); yaml.Unmarshal(text, object) == nil {
			object.ResourceVersion = f.version()
			f.slice = object
		}
	case "Node":
		if object := (&corev1.Node{}); yaml.Unmarshal(text, object) == nil {
			f.node = object
		}
	}
	return f
}

func (f *file) version() string { return hex.EncodeToString(f.sum[:8]) }

// Observe satisfies connector.Store.
func (s *Store) Observe() (seen render.Observed, policy catalog.Policy, ok bool) {
	s.view.Lock()
	defer s.view.Unlock()
	return s.seen, s.policy, s.listed
}

// Trouble satisfies connector.Store.
func (s *Store) Trouble() string {
	s.view.Lock()
	defer s.view.Unlock()
	return s.trouble
}

// Write satisfies connector.Store.
func (s *Store) Write(_ context.Context, w render.Write) (*corev1.Service, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.Service != nil {
		made := w.Service.DeepCopy()
		if w.Verb == render.Create && made.Spec.ClusterIP != corev1.ClusterIPNone {
			if err := s.address(made); err != nil {
				return nil, &connector.WriteError{Reason: connector.WriteUnavailable, Err: fmt.Errorf("create Service %s: %w", made.Name, err)}
			}
		}
		made.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
		f, err := s.write(w.Verb, "service-"+made.Name, &made.ObjectMeta, func() any { return made })
		if err != nil || f == nil {
			return nil, err
		}
		return f.service, nil
	}
	made := w.Slice.DeepCopy()
	made.TypeMeta = metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
	_, err := s.write(w.Verb, "endpointslice-"+made.Name, &made.ObjectMeta, func() any { return made })
	return nil, err
}

// write replaces or removes the file of an object if it has not changed since the comparison. A nil
// file means that it was removed.
func (s *Store) write(verb render.Verb, name string, meta *metav1.ObjectMeta, object func() any) (*file, error) {
	s.dirty = true // the event of the file leads to a read and a publish
	path := filepath.Join(s.config.Directory, name+".yaml")
	fail := func(reason connector.WriteReason, err error) (*file, error) {
		return nil, &connector.WriteError{Reason: reason, Err: fmt.Errorf("%s %s: %w", verb, path, err)}
	}
	text, err := os.ReadFile(path)
	exists := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fail(connector.WriteUnavailable, err)
	case verb == render.Create && exists:
		return fail(connector.WriteExists, fs.ErrExist)
	case verb == render.Delete && !exists:
		delete(s.files, path)
		return nil, nil
	case verb != render.Create && (!exists || decode(text).version() != meta.ResourceVersion):
		return fail(connector.WriteConflict, errors.New("the file has changed"))
	}
	if verb == render.Delete {
		if err := durable.Remove(durable.Disk{}, path); err != nil {
			return fail(connector.WriteUnavailable, err)
		}
		delete(s.files, path)
		return nil, nil
	}
	meta.ResourceVersion = ""
	if meta.UID == "" {
		meta.UID = types.UID(strings.ToLower(rand.Text()))
	}
	if text, err = yaml.Marshal(object()); err != nil {
		return fail(connector.WriteInvalid, err)
	}
	if err := durable.Replace(durable.Disk{}, path, text); err != nil {
		return fail(connector.WriteUnavailable, err)
	}
	s.files[path] = decode(text)
	return s.files[path], nil
}

// address gives a Service a cluster IP of each network of the pool.
func (s *Store) address(service *corev1.Service) error {
	if s.taken == nil {
		s.taken = map[netip.Addr]bool{}
		for _, f := range s.files {
			if f.service != nil {
				s.take(f.service)
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
func (s *Store) take(service *corev1.Service) {
	for _, text := range append(slices.Clone(service.Spec.ClusterIPs), service.Spec.ClusterIP) {
		if ip, err := netip.ParseAddr(text); err == nil {
			// The agent reports texts that are no address.
			s.taken[ip] = true
		}
	}
}
