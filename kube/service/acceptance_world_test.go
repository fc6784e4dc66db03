package service_test

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/kube/kubetest"
	"github.com/troupe-vpp/troupe/kube/service"
	"github.com/troupe-vpp/troupe/messages"
)

// world is the state of one case, and the results of Resolve.
type world struct {
	*objects
	t       *testing.T
	healthy bool
	// shuffle changes the order of the input of Resolve; nil keeps the order of names.
	shuffle *rand.Rand
}

// inputs returns the input of each service, shuffled.
func (w *world) inputs() map[string]*messages.ServiceInput {
	inputs := w.Inputs()
	if w.shuffle != nil {
		for _, key := range slices.Sorted(maps.Keys(inputs)) {
			shuffleInput(inputs[key], w.shuffle)
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
		view := service.Resolve(inputs[key], w.Node, w.Config)
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

// changedFrontends lists the frontends that a client finds changed: rows came, went, or treat a
// client differently. The scope and kind of a row are no treatment.
func changedFrontends(previous, current []*messages.Frontend) (changed []string) {
	before, after := byFrontend(previous), byFrontend(current)
	for frontend := range after {
		if !cmp.Equal(before[frontend], after[frontend]) {
			changed = append(changed, frontend)
		}
	}
	for frontend := range before {
		if after[frontend] == nil {
			changed = append(changed, frontend)
		}
	}
	return changed
}

// byFrontend groups rows by their frontend, each group ordered by the client class.
func byFrontend(rows []*messages.Frontend) map[string][]kubetest.Row {
	groups := map[string][]kubetest.Row{}
	for _, row := range rows {
		r := render(row)
		r.Scope, r.Kind = "", ""
		groups[r.Frontend] = append(groups[r.Frontend], r)
	}
	for _, group := range groups {
		slices.SortStableFunc(group, compareRows)
	}
	return groups
}

// render puts a row into the form of the file, sets ordered.
func render(row *messages.Frontend) kubetest.Row {
	r := kubetest.Row{
		Frontend: service.FrontendText(row), Scope: service.Word(row.GetScope()), Kind: service.KindWord(row.GetKind()),
		From: service.Word(row.GetFrom()), Action: service.Word(row.GetAction()),
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
func parse(t *testing.T, r kubetest.Row) *messages.Frontend {
	t.Helper()
	where, protocol, err := service.ParseFrontendText(r.Frontend)
	if err != nil {
		t.Fatal(err)
	}
	row := &messages.Frontend{
		Address: where.Addr().String(), Port: uint32(where.Port()), Protocol: protocol, AffinitySeconds: r.AffinitySeconds,
	}
	row.Scope = valueOf(t, messages.Scope_name, func(v messages.Scope) string { return service.Word(v) }, r.Scope)
	row.Kind = valueOf(t, messages.FrontendKind_name, service.KindWord, r.Kind)
	row.From = valueOf(t, messages.ClientClass_name, func(v messages.ClientClass) string { return service.Word(v) }, r.From)
	row.Action = valueOf(t, messages.Action_name, func(v messages.Action) string { return service.Word(v) }, r.Action)
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
func normalForm(r kubetest.Row) kubetest.Row {
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

func compareRows(a, b kubetest.Row) int {
	return strings.Compare(a.Frontend+" "+a.From, b.Frontend+" "+b.From)
}
