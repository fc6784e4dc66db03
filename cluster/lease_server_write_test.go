package cluster

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	group     = coordinationv1.Resource("leases")
	leaseKind = schema.GroupKind{Group: coordinationv1.GroupName, Kind: "Lease"}
)

// Leases returns copies of all Leases, by name.
func (s *leaseServer) Leases() map[string]*coordinationv1.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]*coordinationv1.Lease{}
	for name, lease := range s.leases {
		all[name] = lease.DeepCopy()
	}
	return all
}

// Change changes or creates a Lease unconditionally.
func (s *leaseServer) Change(name string, with func(*coordinationv1.Lease)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: leaseNamespace}}
	if old := s.leases[name]; old != nil {
		lease = old.DeepCopy()
	}
	with(lease)
	s.store(lease)
}

// Delete deletes a Lease unconditionally.
func (s *leaseServer) Delete(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[name] != nil {
		s.remove(name)
	}
}

// CollectGarbage deletes the Leases whose owners do not exist, like the garbage collector of
// Kubernetes. Its arguments are the UIDs of existing objects.
func (s *leaseServer) CollectGarbage(exist ...types.UID) {
	alive := map[types.UID]bool{}
	for _, uid := range exist {
		alive[uid] = true
	}
	for name, lease := range s.Leases() {
		if len(lease.OwnerReferences) > 0 && !alive[lease.OwnerReferences[0].UID] {
			s.Delete(name)
		}
	}
}

// Compact forgets the history.
func (s *leaseServer) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.compacted = nil, s.revision
}

// Lose removes all objects and lowers the resource version, as if the etcd of the server was
// replaced. The server must be stopped.
func (s *leaseServer) Lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history, s.compacted, s.revision, s.leases = nil, 0, 1, map[string]*coordinationv1.Lease{}
}

// write carries out a create, patch or delete.
func (s *leaseServer) write(verb, name string, r *http.Request) (*coordinationv1.Lease, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch verb {
	case "create":
		return s.create(body)
	case "patch":
		if r.Header.Get("Content-Type") != string(types.MergePatchType) {
			return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, verb, group, name, "", 0, true)
		}
		return s.patch(name, body)
	default:
		return nil, s.delete(name, body)
	}
}

func (s *leaseServer) create(body []byte) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	if err := json.Unmarshal(body, lease); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	lease.Namespace = leaseNamespace
	switch {
	case lease.ResourceVersion != "":
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	case s.leases[lease.Name] != nil:
		return nil, apierrors.NewAlreadyExists(group, lease.Name)
	}
	if err := valid(lease); err != nil {
		return nil, err
	}
	return s.store(lease), nil
}

func (s *leaseServer) patch(name string, body []byte) (*coordinationv1.Lease, error) {
	old := s.leases[name]
	if old == nil {
		return nil, apierrors.NewNotFound(group, name)
	}
	lease, err := merged(old, body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if lease.ResourceVersion != old.ResourceVersion {
		return nil, apierrors.NewConflict(group, name, errModified)
	}
	if reflect.DeepEqual(lease, old) {
		return old, nil
	}
	if err := valid(lease); err != nil {
		return nil, err
	}
	return s.store(lease), nil
}

func (s *leaseServer) delete(name string, body []byte) error {
	options := metav1.DeleteOptions{}
	if err := json.Unmarshal(body, &options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	lease := s.leases[name]
	if lease == nil {
		return apierrors.NewNotFound(group, name)
	}
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != lease.UID || p.ResourceVersion != nil && *p.ResourceVersion != lease.ResourceVersion) {
		return apierrors.NewConflict(group, name, errModified)
	}
	s.remove(name)
	return nil
}

// store writes a Lease and returns the stored object. The lock must be held.
func (s *leaseServer) store(lease *coordinationv1.Lease) *coordinationv1.Lease {
	verb := "ADDED"
	if s.leases[lease.Name] != nil {
		verb = "MODIFIED"
	}
	s.revision++
	lease.ResourceVersion = version(s.revision)
	if lease.UID == "" {
		lease.UID = types.UID("uid-" + lease.ResourceVersion)
	}
	s.leases[lease.Name] = lease
	s.append(event{s.revision, lease, line(verb, lease)})
	return lease
}

// remove deletes a Lease. The lock must be held.
func (s *leaseServer) remove(name string) {
	s.revision++
	last := s.leases[name].DeepCopy()
	last.ResourceVersion = version(s.revision)
	delete(s.leases, name)
	s.append(event{s.revision, last, line("DELETED", last)})
}

func (s *leaseServer) append(e event) {
	s.history = append(s.history, e)
	close(s.changed)
	s.changed = make(chan struct{})
}

// valid checks metadata with the code of the real API server.
func valid(lease *coordinationv1.Lease) error {
	errs := validation.ValidateObjectMeta(&lease.ObjectMeta, true, validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if len(errs) > 0 {
		return apierrors.NewInvalid(leaseKind, lease.Name, errs)
	}
	return nil
}

// merged applies a JSON merge patch (RFC 7396).
func merged(lease *coordinationv1.Lease, body []byte) (*coordinationv1.Lease, error) {
	var patch, object map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return nil, err
	}
	before, err := json.Marshal(lease)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(before, &object); err != nil {
		return nil, err
	}
	merge(object, patch)
	after, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	next := &coordinationv1.Lease{}
	return next, json.Unmarshal(after, next)
}

func merge(object, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch old, had := object[key].(map[string]any); {
		case value == nil:
			delete(object, key)
		case isObject && had:
			merge(old, inner)
		case isObject:
			fresh := map[string]any{}
			merge(fresh, inner)
			object[key] = fresh
		default:
			object[key] = value
		}
	}
}

func version(revision int64) string { return strconv.FormatInt(revision, 10) }
