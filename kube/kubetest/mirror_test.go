package kubetest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/messages"
)

// reports collects the failures of a test.
type reports []string

func (*reports) Helper() {}

func (r *reports) Errorf(format string, args ...any) { *r = append(*r, fmt.Sprintf(format, args...)) }

func (r *reports) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

func input(key string, generation uint64) *messages.ServiceInput {
	return &messages.ServiceInput{Key: key, Generation: generation, Service: &messages.Service{Name: key}}
}

// TestMirrorSeesBrokenRules: the Mirror reports each broken rule, so its checks are effective.
func TestMirrorSeesBrokenRules(t *testing.T) {
	complete := &messages.Snapshot{Complete: true, Generation: 5, Services: []*messages.ServiceInput{input("a/a", 3)}, Node: &messages.NodeInput{}}
	for name, c := range map[string]struct {
		do   func(*kubetest.Mirror)
		want string // "" = no complaint
	}{
		"snapshot of the past": {func(m *kubetest.Mirror) {
			m.Snapshot(complete)
			m.ServiceChanged(input("a/a", 6))
			m.Snapshot(complete)
		}, "snapshot of generation 5"},
		"nothing wrong":              {func(m *kubetest.Mirror) { m.Snapshot(complete); m.ServiceChanged(input("a/a", 6)) }, ""},
		"change before the snapshot": {func(m *kubetest.Mirror) { m.ServiceChanged(input("a/a", 1)) }, "before the first snapshot"},
		"node before the snapshot":   {func(m *kubetest.Mirror) { m.NodeChanged(&messages.NodeInput{Generation: 1}) }, "before the first snapshot"},
		"generation that falls":      {func(m *kubetest.Mirror) { m.Snapshot(complete); m.ServiceChanged(input("a/a", 5)) }, "generation 5, there was 5"},
		"node generation that falls": {func(m *kubetest.Mirror) { m.Snapshot(complete); m.NodeChanged(&messages.NodeInput{Generation: 5}) }, "generation 5, there was 5"},
		"incomplete":                 {func(m *kubetest.Mirror) { m.Snapshot(&messages.Snapshot{}) }, "not complete"},
		"gone, but never there": {func(m *kubetest.Mirror) {
			m.Snapshot(complete)
			m.ServiceChanged(&messages.ServiceInput{Key: "x", Generation: 6})
		}, "it was not there"},
		"health twice": {func(m *kubetest.Mirror) { m.Health(kube.Health{OK: true}); m.Health(kube.Health{OK: true}) }, "reported twice"},
		"generation with other value": {func(m *kubetest.Mirror) {
			m.Snapshot(complete)
			other := input("a/a", 3)
			other.Service.Uid = "x"
			m.Snapshot(&messages.Snapshot{Complete: true, Generation: 5, Services: []*messages.ServiceInput{other}})
		}, "used again"},
		"value that changes": {func(m *kubetest.Mirror) {
			value := input("a/a", 3)
			m.Snapshot(&messages.Snapshot{Complete: true, Generation: 5, Services: []*messages.ServiceInput{value}})
			value.Service.Uid = "changed"
		}, "changed after it was delivered"},
	} {
		t.Run(name, func(t *testing.T) {
			m, got := kubetest.NewMirror(), &reports{}
			c.do(m)
			m.Check(got)
			if text := strings.Join(*got, "\n"); (c.want == "") != (text == "") || !strings.Contains(text, c.want) {
				t.Errorf("complaints %q, want %q", text, c.want)
			}
		})
	}
}

func TestMirrorHoldsWhatCame(t *testing.T) {
	m := kubetest.NewMirror()
	m.Snapshot(&messages.Snapshot{Complete: true, Generation: 2, Services: []*messages.ServiceInput{input("a/a", 1), input("a/b", 2)}, Node: &messages.NodeInput{}})
	m.ServiceChanged(&messages.ServiceInput{Key: "a/a", Generation: 3})
	m.ServiceChanged(input("a/c", 4))
	m.NodeChanged(&messages.NodeInput{Generation: 5})
	m.Health(kube.Health{OK: true})
	view := m.Wait(t, "everything", func(v kubetest.View) bool { return v.Updates == 3 && v.Healthy() })
	if len(view.Services) != 2 || view.Services["a/b"].GetGeneration() != 2 || view.Services["a/c"].GetGeneration() != 4 || view.Node.GetGeneration() != 5 {
		t.Errorf("it holds %v", view.Snapshot())
	}
	m.Check(t)
}

// TestObjectsOfTheAcceptanceMaterial: the loaders find as many cases and objects as the material
// lists.
func TestObjectsOfTheAcceptanceMaterial(t *testing.T) {
	steps := 0
	cases := kubetest.Load(t).Cases
	for _, c := range cases {
		steps += len(c.Steps)
	}
	dump := kubetest.DumpObjects(t)
	if got := fmt.Sprint(len(cases), steps, len(dump.Services), len(dump.EndpointSlices), len(dump.Nodes), len(dump.Pods), len(dump.All())); got != "99 40 17 17 3 31 68" {
		t.Errorf("cases, steps, services, slices, nodes, pods, all: %s", got)
	}
}
