package store

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/kube/connector/catalog"
	"github.com/troupe-vpp/troupe/kube/connector/render"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var pool = []netip.Prefix{netip.MustParsePrefix("10.96.0.0/29"), netip.MustParsePrefix("fd00::/120")}

var policy = catalog.Policy{ServiceRanges: pool, Pods: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/16")}}

// stage is a store in a directory.
type stage struct {
	*testing.T
	store   *Files
	dir     string
	changes chan struct{}
}

// open starts a store in a directory.
func open(t *testing.T, dir string) *stage {
	s := &stage{t, NewFiles(Config{Directory: dir, Namespace: "outside", Pool: pool, Policy: policy}, slog.New(slog.DiscardHandler)), dir, make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = s.store.Run(ctx, func() {
			select {
			case s.changes <- struct{}{}:
			default:
			}
		})
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

// pass writes the wanted services of a source into the directory, and returns the names of the
// written files.
func (s *stage) pass(names ...string) (writes []string) {
	s.Helper()
	var services []catalog.Service
	for _, name := range names {
		services = append(services, catalog.Service{
			Name: name, Ports: []catalog.Port{{Name: "http", Number: 80}}, Instances: []catalog.Instance{{Address: "192.0.2.1"}, {Address: "10.96.0.3"}},
		})
	}
	sources := []catalog.Sourced{{Source: "yaml", Services: services}}
	for range 100 { // until what was written is seen
		seen, policy, ok := s.store.Observe()
		o := render.Options{Namespace: "outside", Policy: policy}
		changes := render.Diff(render.Render(sources, seen, o), seen, sources, o)
		if ok && len(changes.Work) == 0 {
			return writes
		}
		for _, work := range changes.Work {
			if !ok {
				break
			}
			if _, err := Do(s.Context(), s.store, work); err == nil {
				writes = append(writes, work.Service)
			}
		}
		select {
		case <-s.changes:
		case <-time.After(10 * time.Second):
			s.Fatal("what was written is not seen")
		}
	}
	s.Fatal("no end")
	return nil
}

// clusterIPs returns the cluster IPs of the Services, by name.
func (s *stage) clusterIPs() map[string]string {
	out := map[string]string{}
	seen, _, _ := s.store.Observe()
	for _, one := range seen.Services {
		out[one.Name] = strings.Join(one.Spec.ClusterIPs, ",")
	}
	return out
}

// TestA25ClusterIPs: each Service gets an address of each family and keeps it over a restart. No
// two Services have the same address.
func TestA25ClusterIPs(t *testing.T) {
	dir := t.TempDir()
	foreign := "apiVersion: v1\nkind: Service\nmetadata: {name: mine, namespace: other}\nspec: {clusterIP: 10.96.0.1}\n"
	if err := os.WriteFile(filepath.Join(dir, "foreign.yaml"), []byte(foreign), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	s.pass("a", "b")
	if got := s.clusterIPs(); got["a"] != "10.96.0.2,fd00::1" || got["b"] != "10.96.0.3,fd00::2" {
		t.Errorf("%v", got)
	}
	again := open(t, dir)
	if writes := again.pass("a", "b"); len(writes) > 0 {
		t.Errorf("a restart writes %q", writes)
	}
	again.pass("b", "c")
	if got := again.clusterIPs(); got["b"] != "10.96.0.3,fd00::2" || got["c"] == "" || got["c"] == got["b"] || got["a"] != "" {
		t.Errorf("%v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "foreign.yaml"))
	if err != nil || string(text) != foreign {
		t.Errorf("%v %s", err, text)
	}
}

// TestNodes: addresses of Nodes in the directory, and of their pods, are refused like configured
// addresses.
func TestNodes(t *testing.T) {
	dir := t.TempDir()
	node := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {podCIDRs: [10.1.1.0/24]}\nstatus: {addresses: [{type: InternalIP, address: 192.0.2.200}]}\n"
	if err := os.WriteFile(filepath.Join(dir, "node.yaml"), []byte(node), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	<-s.changes
	_, policy, ok := s.store.Observe()
	for address, want := range map[string]catalog.Reason{
		"192.0.2.200": catalog.ReasonNode, "10.1.1.7": catalog.ReasonPod, "10.2.1.7": catalog.ReasonPod, "10.96.0.3": catalog.ReasonServiceRange, "192.0.2.1": "",
	} {
		_, problem := policy.Address(catalog.Instance{Address: address})
		if !ok || (problem == nil) != (want == "") || problem != nil && problem.Reason != want {
			t.Errorf("%s: %v, want %q", address, problem, want)
		}
	}
	policy.AllowPods = true
	if _, problem := policy.Address(catalog.Instance{Address: "10.1.1.7"}); problem != nil {
		t.Errorf("although pods are allowed: %v", problem)
	}
}

// TestWriteRefuses: a file that others edited or made meanwhile is not overwritten, and an
// exhausted pool is an error.
func TestWriteRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	s.pass("a")
	seen, _, _ := s.store.Observe()
	old := seen.Services[0]
	path := filepath.Join(s.dir, "service-a.yaml")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, "# edited\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	var refused *WriteError
	for verb, want := range map[render.Verb]WriteReason{
		render.Create: WriteExists, render.Update: WriteConflict, render.Delete: WriteConflict,
	} {
		if _, err := s.store.Write(t.Context(), render.Write{Verb: verb, Service: old}); !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("%s: %v, want %s", verb, err, want)
		}
	}
	names := []string{"a", "b", "c", "d", "e", "f"}
	s.pass(names...)
	made := s.clusterIPs()
	if slices.ContainsFunc(names, func(name string) bool { return made[name] == "" }) || len(made) != len(names) {
		t.Errorf("%v", made)
	}
	one := old.DeepCopy()
	one.Name, one.UID, one.Spec.ClusterIP, one.Spec.ClusterIPs = "g", "", "", nil
	if _, err := s.store.Write(t.Context(), render.Write{Verb: render.Create, Service: one}); err == nil || !strings.Contains(err.Error(), "no address of 10.96.0.0/29 is free") {
		t.Errorf("%v", err)
	}
}

// TestTrouble: a missing directory is reported, and found when it is there.
func TestTrouble(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	s := open(t, dir)
	<-s.changes
	if _, _, ok := s.store.Observe(); ok || !strings.Contains(s.store.Trouble(), "no such file") {
		t.Errorf("%v %q", ok, s.store.Trouble())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for ok := false; !ok; _, _, ok = s.store.Observe() {
		select {
		case <-s.changes:
		case <-time.After(time.Minute):
			t.Fatal("not seen")
		}
	}
	if s.store.Trouble() != "" {
		t.Error(s.store.Trouble())
	}
}
