package service_test

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/kube/kubetest/casefile"
	"github.com/troupe-vpp/troupe/kube/normalize"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// world is the accumulated state of one case: the objects of a source, and the results of Resolve.
type world struct {
	t        *testing.T
	services map[string]*messages.Service
	slices   map[string]*messages.EndpointSlice
	node     *messages.NodeContext
	config   service.Config
	healthy  bool
	// shuffle changes the order of the input of Resolve; nil keeps the order of names.
	shuffle *rand.Rand
}

// newWorld returns a world with the node and the configuration of a case.
func newWorld(t *testing.T, c *casefile.Case, shuffle *rand.Rand) *world {
	t.Helper()
	w := &world{
		t: t, services: map[string]*messages.Service{}, slices: map[string]*messages.EndpointSlice{}, healthy: true, shuffle: shuffle,
	}
	addresses, err := service.ParseNodePortAddresses(c.Config.NodePortAddresses)
	if err != nil {
		t.Fatal(err)
	}
	w.config = service.Config{
		NodePortAddresses: addresses,
		ClusterCIDRs:      prefixes(t, c.Config.ClusterCIDRs),
		ServiceCIDRs:      prefixes(t, c.Config.ServiceCIDRs),
		MasqueradeAll:     c.Config.MasqueradeAll,
	}
	w.setNode(c.Node)
	return w
}

func prefixes(t *testing.T, texts []string) []netip.Prefix {
	t.Helper()
	var list []netip.Prefix
	for _, text := range texts {
		prefix, err := normalize.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, prefix)
	}
	return list
}

// setNode replaces the node. The node is normalised like a real Node object.
func (w *world) setNode(n casefile.Node) {
	w.t.Helper()
	object := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	for _, text := range n.Addresses {
		object.Status.Addresses = append(object.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: text})
	}
	node, problems := normalize.Node("case", object)
	if len(problems) > 0 || node == nil {
		w.t.Fatalf("node: %v", problems)
	}
	if node.GetZone() != n.Zone {
		w.t.Fatalf("zone of the labels is %q, of the case %q", node.GetZone(), n.Zone)
	}
	w.node = &messages.NodeContext{Node: node, Addresses: n.Addresses}
}

// apply creates or replaces objects.
func (w *world) apply(services []corev1.Service, endpointSlices []discoveryv1.EndpointSlice) {
	w.t.Helper()
	for i := range services {
		s, problems := normalize.Service("case", &services[i])
		if len(problems) > 0 {
			w.t.Errorf("service: %v", problems)
		}
		w.services[normalize.ServiceKey(s)] = s
	}
	for i := range endpointSlices {
		s, problems := normalize.EndpointSlice("case", &endpointSlices[i])
		if len(problems) > 0 {
			w.t.Errorf("slice: %v", problems)
		}
		w.slices[normalize.SliceKey(s)] = s
	}
}

// remove deletes objects by "namespace/name".
func (w *world) remove(keys casefile.Keys) {
	w.t.Helper()
	for _, key := range keys.Services {
		if _, ok := w.services[key]; !ok {
			w.t.Fatalf("no service %s to delete", key)
		}
		delete(w.services, key)
	}
	for _, key := range keys.EndpointSlices {
		if _, ok := w.slices[key]; !ok {
			w.t.Fatalf("no slice %s to delete", key)
		}
		delete(w.slices, key)
	}
}

// inputs groups the objects by service, as a source does.
func (w *world) inputs() map[string]*messages.ServiceInput {
	inputs := map[string]*messages.ServiceInput{}
	of := func(key string) *messages.ServiceInput {
		if inputs[key] == nil {
			inputs[key] = &messages.ServiceInput{Key: key}
		}
		return inputs[key]
	}
	for _, key := range slices.Sorted(maps.Keys(w.services)) {
		of(key).Service = w.services[key]
	}
	for _, key := range slices.Sorted(maps.Keys(w.slices)) {
		if owner := normalize.SliceOwner(w.slices[key]); owner != "" {
			in := of(owner)
			in.Slices = append(in.Slices, w.slices[key])
		}
	}
	if w.shuffle != nil {
		for _, in := range inputs {
			shuffleInput(in, w.shuffle)
		}
	}
	return inputs
}

// shuffleInput puts slices, endpoints and slice ports into another order, on copies.
func shuffleInput(in *messages.ServiceInput, random *rand.Rand) {
	for i, slice := range in.GetSlices() {
		in.Slices[i] = &messages.EndpointSlice{
			Namespace: slice.GetNamespace(), Name: slice.GetName(), Service: slice.GetService(), Family: slice.GetFamily(),
			Endpoints: slices.Clone(slice.GetEndpoints()), Ports: slices.Clone(slice.GetPorts()),
			Headless: slice.GetHeadless(), Triggered: slice.GetTriggered(), Generation: slice.GetGeneration(),
		}
		swap(random, in.Slices[i].Endpoints)
		swap(random, in.Slices[i].Ports)
	}
	swap(random, in.Slices)
}

func swap[T any](random *rand.Rand, list []T) {
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}

// views resolves everything, ordered by key or shuffled.
func (w *world) views(inputs map[string]*messages.ServiceInput) []*messages.ServiceView {
	w.t.Helper()
	var views []*messages.ServiceView
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		view := service.Resolve(inputs[key], w.node, w.config)
		if len(view.GetErrors()) > 0 {
			w.t.Errorf("%s: %v", key, view.GetErrors())
		}
		if problem := invariantBroken(view); problem != "" {
			w.t.Errorf("%s: %s", key, problem)
		}
		views = append(views, view)
	}
	if w.shuffle != nil {
		swap(w.shuffle, views)
	}
	return views
}

// rowsOf lists the rows of all views.
func rowsOf(views []*messages.ServiceView) []*messages.Frontend {
	var rows []*messages.Frontend
	for _, view := range views {
		rows = append(rows, view.GetFrontends()...)
	}
	return rows
}

// render puts a row into the form of the file, sets ordered.
func render(row *messages.Frontend) casefile.Row {
	r := casefile.Row{
		Frontend: service.FrontendText(row), Scope: service.ScopeWord(row.GetScope()), Kind: service.KindWord(row.GetKind()),
		From: service.FromWord(row.GetFrom()), Action: service.ActionWord(row.GetAction()),
		Endpoints: backendTexts(row.GetBackends()), AffinitySeconds: row.GetAffinitySeconds(),
		Reject: row.GetAction() == messages.Action_ACTION_REJECT,
	}
	if row.GetAction() == messages.Action_ACTION_FORWARD {
		r.MasqueradeFrom = sortedSet(row.GetMasqueradeFrom())
	} else if len(row.GetMasqueradeFrom()) > 0 {
		r.MasqueradeFrom = &[]string{"must not be set on this action"}
	}
	if len(row.GetAllowSources()) > 0 {
		r.AllowSources = sortedSet(row.GetAllowSources())
	}
	return r
}

// parse is the inverse of render, for the rows of an earlier run.
func parse(t *testing.T, r casefile.Row) *messages.Frontend {
	t.Helper()
	where, protocol, err := service.ParseFrontendText(r.Frontend)
	if err != nil {
		t.Fatal(err)
	}
	row := &messages.Frontend{
		Address: where.Addr().String(), Port: uint32(where.Port()), Protocol: protocol, AffinitySeconds: r.AffinitySeconds,
	}
	row.Scope = valueOf(t, messages.Scope_name, service.ScopeWord, r.Scope)
	row.Kind = valueOf(t, messages.FrontendKind_name, service.KindWord, r.Kind)
	row.From = valueOf(t, messages.ClientClass_name, service.FromWord, r.From)
	row.Action = valueOf(t, messages.Action_name, service.ActionWord, r.Action)
	for _, text := range slices.Sorted(slices.Values(r.Endpoints)) {
		backend := netip.MustParseAddrPort(text)
		row.Backends = append(row.Backends, &messages.Backend{Address: backend.Addr().String(), Port: uint32(backend.Port())})
	}
	if r.MasqueradeFrom != nil {
		row.MasqueradeFrom = *r.MasqueradeFrom
	}
	if r.AllowSources != nil {
		row.AllowSources = *r.AllowSources
	}
	return row
}

// valueOf returns the enum value of a word of the public interface.
func valueOf[E ~int32](t *testing.T, names map[int32]string, word func(E) string, text string) E {
	t.Helper()
	for value := range names {
		if word(E(value)) == text {
			return E(value)
		}
	}
	t.Fatalf("unknown word %q", text)
	return 0
}

// normalForm orders the sets of an expected row.
func normalForm(r casefile.Row) casefile.Row {
	r.Endpoints = *sortedSet(r.Endpoints)
	if r.MasqueradeFrom != nil {
		r.MasqueradeFrom = sortedSet(*r.MasqueradeFrom)
	}
	if r.AllowSources != nil {
		r.AllowSources = sortedSet(*r.AllowSources)
	}
	return r
}

func sortedSet(list []string) *[]string {
	sorted := append([]string{}, list...)
	slices.Sort(sorted)
	return &sorted
}

func backendTexts(backends []*messages.Backend) []string {
	texts := make([]string, len(backends))
	for i, b := range backends {
		texts[i] = service.BackendText(b)
	}
	return *sortedSet(texts)
}

func compareRows(a, b casefile.Row) int {
	return strings.Compare(a.Frontend+" "+a.From, b.Frontend+" "+b.From)
}
