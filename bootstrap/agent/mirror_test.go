package agent

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/cluster"
	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// machine is a node whose VPP and disk outlive its agents.
type machine struct {
	*testing.T
	vpp   *simulator.VPP
	shop  string // directory of the cluster's objects
	data  string
	etcd  *etcd.Embedded
	node  *messages.NodeInput
	wrote uint64
}

// newMachine is the node shop-a of the demo, with node ID 2.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{T: t, shop: shop(t), data: filepath.Join(shortDir(t), "data")}
	all := &normalize.Objects{}
	names, err := filepath.Glob(filepath.Join(m.shop, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	for _, name := range names {
		in, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		objects, _ := files.Decode(in, name)
		_ = in.Close()
		all.Nodes, all.Pods = append(all.Nodes, objects.Nodes...), append(all.Pods, objects.Pods...)
	}
	m.node = kube.Collect("shop-a", all.Select("shop-a"), nil).GetNode()
	cni := newSimulatedCNI()
	cni.changed(m.node)
	m.vpp = simulator.New(simulator.Options{Logger: quiet(), AutoRestart: true, OnBoot: cni.boot})
	if err := m.vpp.Listen(filepath.Join(shortDir(t), "vpp")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.vpp.Close() })
	return m
}

// takeFirstID has another node hold ID 1 of an etcd.
func (m *machine) takeFirstID(etcd *etcd.Embedded) {
	m.Helper()
	other := &nodeSync{
		cfg: cluster.Config{NodeName: "shop-b"}, log: quiet(),
		open: storeOf(etcd),
	}
	other.SetNodes(&messages.NodeInput{Self: m.node.GetNodes()["shop-b"], Nodes: m.node.GetNodes()})
	run := runSync(m.T, other)
	eventually(m.T, "shop-b holds an ID", func() bool { return run.latest.Load().GetClaim() == messages.ClaimState_CLAIM_HELD })
	run.end(m.T)
}

// agent starts an agent of the machine.
func (m *machine) agent(change func(cfg *config.Agent)) *Agent {
	m.Helper()
	cfg := everything(m.T)
	cfg.DataDir = m.data
	cfg.Kubernetes.Source = config.SourceFilesPrefix + m.shop
	cfg.VPP.Mode, cfg.VPP.APISocket = config.VPPSocket, m.vpp.Socket()
	cfg.Etcd.Mode, cfg.Etcd.Endpoints = config.EtcdExternal, []string{"http://" + dead(m.T)}
	if m.etcd != nil {
		cfg.Etcd.Endpoints = m.etcd.Client().Endpoints()
	}
	if change != nil {
		change(cfg)
	}
	m.wrote = m.vpp.Counters().Mutating()
	return run(m.T, cfg)
}

// unchanged waits until an agent finds nothing to do, but what it leaves undone until the source
// speaks, and has done nothing.
func (m *machine) unchanged(a *Agent, rows []string, undone ...string) {
	m.Helper()
	for range 2 {
		diff, err := a.Backend().Diff(m.Context())
		if err != nil || len(diff.Renderers) != len(a.renderers()) {
			m.Fatalf("diff %+v, %v", diff, err)
		}
		var operations []string
		for _, renderer := range diff.Renderers {
			operations = append(operations, renderer.Operations...)
			if renderer.Error != "" {
				m.Errorf("diff %+v", renderer)
			}
		}
		if !slices.Equal(operations, undone) {
			m.Errorf("operations %q are left, want %q", operations, undone)
		}
	}
	if writes := m.vpp.Counters().Mutating() - m.wrote; writes != 0 {
		m.Errorf("%d writes to VPP\n%s", writes, m.vpp.Counters())
	}
	if diff := cmp.Diff(rows, m.vpp.Rows()); diff != "" {
		m.Errorf("rows (-before +now)\n%s", diff)
	}
}

// id is the node ID as the API shows it, with its claim.
func (m *machine) id(a *Agent) (id uint32, claim string) {
	nodes := must(a.Backend().Nodes(m.Context()))(m.T)
	for _, n := range nodes.Items {
		if n.Name == "shop-a" {
			return n.ID, nodes.Claim
		}
	}
	return 0, nodes.Claim
}

func (m *machine) fromMirror(a *Agent) {
	m.Helper()
	eventually(m.T, "what the mirror says is in VPP", func() bool {
		warned, aged := 0, false
		for _, p := range a.Backend().Readiness().Parts {
			if p.OK && p.Reason == "the services are those of the local mirror" {
				warned++ // the renderers and the registry
			}
			if p.Name == "watch" {
				aged = !p.OK && strings.HasPrefix(p.Reason, "from the local mirror of 2") && strings.HasSuffix(p.Reason, "s old)")
			}
		}
		return warned == len(a.renderers())+1 && aged
	})
}

// TestStartFromTheMirror: without API server and etcd an agent starts with the same rows and the
// same node ID, and removes nothing; when they are back, exactly what changed meanwhile changes.
func TestStartFromTheMirror(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.etcd = embedded(t)
	m.takeFirstID(m.etcd)
	first := m.agent(nil)
	ready(t, first)
	if id, claim := m.id(first); id != 2 || claim != "held" {
		t.Fatalf("node ID %d %s", id, claim)
	}
	quiescentVPP(t, first, m.vpp)
	rows := m.vpp.Rows()
	stop(t, first)

	m.etcd = nil
	t.Run("an API server that does not answer", func(t *testing.T) {
		m := *m
		m.T = t
		listener, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		a := m.agent(func(cfg *config.Agent) {
			cfg.Kubernetes.Source, cfg.Kubernetes.Kubeconfig = config.SourceKubernetes, kubeconfig(t, listener.Addr().String())
			cfg.Mirror.Grace = config.Duration(1)
		})
		m.fromMirror(a)
		m.unchanged(a, rows)
		reason(t, a, "nodes", "ID 2, which this node has used, is remembered and unconfirmed")
		eventually(t, "the ID of the run before is shown", func() bool {
			id, claim := m.id(a)
			return id == 2 && claim == "pending"
		})
		stop(t, a)
	})
	t.Run("a VPP that was restarted as well", func(t *testing.T) {
		m := *m
		m.T = t
		m.vpp.Restart()
		a := m.agent(func(cfg *config.Agent) { cfg.Kubernetes.Source = "files:/nonexistent" })
		m.fromMirror(a)
		quiescentVPP(t, a, m.vpp)
		if diff := cmp.Diff(rows, m.vpp.Rows()); diff != "" {
			t.Errorf("rows (-before +now)\n%s", diff)
		}
		stop(t, a)
	})
	t.Run("everything comes back", func(t *testing.T) {
		m := *m
		m.T = t
		m.etcd = embedded(t) // it has lost everything: ID 1 is free, too
		hidden := m.shop + ".hidden"
		if err := os.Rename(m.shop, hidden); err != nil {
			t.Fatal(err)
		}
		a := m.agent(nil)
		m.fromMirror(a)
		// that a service has no endpoints, only the source can say
		m.unchanged(a, rows, "add reject route 10.96.40.1/32")
		eventually(t, "the node ID is held again", func() bool {
			id, claim := m.id(a)
			return id == 2 && claim == "held"
		})
		withoutService(t, filepath.Join(hidden, "inside.yaml"), "catalog")
		if err := os.Rename(hidden, m.shop); err != nil {
			// seen with the next slow look, which takes some seconds
			t.Fatal(err)
		}
		ready(t, a)
		removed := func(row string) bool { return strings.Contains(row, "10.96.30.2:") }
		gone := slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return slices.Contains(m.vpp.Rows(), row) })
		left := slices.DeleteFunc(m.vpp.Rows(), func(row string) bool { return slices.Contains(rows, row) })
		if len(gone) == 0 || len(left) != 0 || slices.ContainsFunc(gone, func(row string) bool { return !removed(row) }) {
			t.Errorf("gone %q, new %q", gone, left)
		}
		t.Logf("gone %q", gone)
	})
}

// withoutService takes a Service out of a file.
func withoutService(t *testing.T, path, name string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	kept := slices.DeleteFunc(slices.Clone(documents), func(d string) bool {
		return strings.Contains(d, "kind: Service\n") && strings.Contains(d, "\n  name: "+name+"\n")
	})
	if len(kept) != len(documents)-1 {
		t.Fatalf("%d of %d documents are left", len(kept), len(documents))
	}
	if err := os.WriteFile(path, []byte(strings.Join(kept, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestABrokenManifestAtTheStart keeps the rows of the run before, and only those: what is broken
// now was served a moment ago.
func TestABrokenManifestAtTheStart(t *testing.T) {
	m := newMachine(t)
	alone := func(cfg *config.Agent) { cfg.Etcd.Mode, cfg.Etcd.Endpoints = config.EtcdNone, nil }
	first := m.agent(alone)
	ready(t, first)
	quiescentVPP(t, first, m.vpp)
	rows := m.vpp.Rows()
	stop(t, first)
	path := filepath.Join(m.shop, "inside.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), "clusterIP: \"10.96.30.2\"", "clusterIP: [10.96.30.2]", 1)
	if broken == string(text) {
		t.Fatal("nothing was broken")
	}
	if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	a := m.agent(alone)
	ready(t, a)
	m.unchanged(a, rows)
	eventually(t, "the error is shown", func() bool {
		return slices.ContainsFunc(a.Backend().Readiness().Parts, func(p api.Part) bool {
			return p.Name == "watch" && p.OK && strings.Contains(p.Reason, "Service shop/catalog")
		})
	})
}

func TestOrigin(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{"kubernetes": "kubernetes", "files:/a/b": "files:/a/b", "files:/a/": "files:/a", "files:x": "files:" + wd + "/x"} {
		if got := origin(config.Kubernetes{Source: source}); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}
