package render

import (
	"errors"
	"slices"
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// said is an operation.
type said string

func (s said) Describe() string { return string(s) }

// owning are objects with owners and services.
type owning struct {
	wishes[name]
	owner    map[name]string
	services map[name][]string
}

func (o *owning) Owner(k name) string      { return o.owner[k] }
func (o *owning) Services(k name) []string { return o.services[k] }

// newLogger is a driver with the services "a/a" and "b/b", for tests of its operation log.
func newLogger() (*Driver[name], *owning) {
	a := &owning{nil, map[name]string{}, map[name][]string{}}
	d := &Driver[name]{
		name: "toy", noun: "rows", wishes: a, queue: queueOf(newNames()), set: &messages.InterfaceSet{Cause: 9},
		subscribers: map[string]*subscriber{"a/a": {generation: 11}, "b/b": {generation: 22}}, connection: connection{programmed: true},
	}
	return d, a
}

// logged are the events of a batch.
func logged(d *Driver[name], results []Result[name]) (events []*messages.Event) {
	log := oplog[name]{causes: map[string]uint64{}, groups: map[string][]Result[name]{}}
	for _, r := range results {
		log.add(d, r)
	}
	for _, object := range log.names {
		events = append(events, d.event(object, log.causes[object], log.groups[object]))
	}
	return events
}

// TestOperationsAreLoggedForTheirService: settings and what belongs to no service with the cause of
// the interfaces.
func TestOperationsAreLoggedForTheirService(t *testing.T) {
	d, a := newLogger()
	a.owner["1"], a.owner["2"] = "a/a", "b/b"
	events := logged(d, []Result[name]{
		{Op: said("set"), Setting: true},
		{Op: said("add 1"), Object: "1"},
		{Op: said("add 2"), Object: "2"},
		{Op: said("add more 1"), Object: "1", Err: errors.New("broken")},
		{Op: said("remove 3"), Object: "3"},
	})
	if len(events) != 3 {
		t.Fatalf("%d events, want one for the settings and one for each service", len(events))
	}
	if e := events[0]; e.GetObject() != "toy" || e.GetCause() != 9 || !slices.Equal(e.GetOperations(), []string{"set", "remove 3"}) || e.GetError() != "" {
		t.Errorf("settings, and an object of no service: %v", e)
	}
	if e := events[1]; e.GetObject() != "a/a" || e.GetCause() != 11 || !slices.Equal(e.GetOperations(), []string{"add 1", "add more 1"}) ||
		!slices.Equal(e.GetExecuted(), []string{"add 1"}) || e.GetError() != "1 operations not carried out, first: broken" {
		t.Errorf("a service whose change failed in part: %v", e)
	}
	if e := events[2]; e.GetObject() != "b/b" || e.GetCause() != 22 || e.GetExecuted() != nil || e.GetText() != "1 operations on 1 rows" || e.GetKind() != "render" {
		t.Errorf("a service: %v", e)
	}
}

// TestBeneficiary: the owner, else the first service that wants the object, else one that leaves
// it.
func TestBeneficiary(t *testing.T) {
	d, a := newLogger()
	a.owner["owned"], a.services["owned"] = "b/b", []string{"a/a", "b/b"}
	a.owner["foreign"], a.services["foreign"] = "VPP: theirs", []string{"a/a"}
	a.services["shared"] = []string{"unknown", "b/b"}
	d.queue.leavers["left"], d.queue.leavers["old"] = []string{"b/b"}, []string{"forgotten"}
	for k, want := range map[name]string{"owned": "b/b", "foreign": "a/a", "shared": "b/b", "left": "b/b", "old": "", "other": ""} {
		if got := d.beneficiary(k); got != want {
			t.Errorf("%s is changed for %q, want %q", k, got, want)
		}
	}
}

// TestManyOperationsAreSummedUp: at most 32 lines, then how many more there are.
func TestManyOperationsAreSummedUp(t *testing.T) {
	d, _ := newLogger()
	var list []Result[name]
	for i := range mostLines + 1 {
		k := name("object " + string(rune('a'+i)))
		list = append(list, Result[name]{Op: said(k.String()), Object: k, Err: errors.New("no")})
	}
	e := d.event("toy", 0, list)
	if ops := e.GetOperations(); len(ops) != mostLines+1 || ops[mostLines] != "and 1 more" || e.GetText() != "33 operations on 33 rows" || len(e.GetExecuted()) != 0 {
		t.Errorf("%v", e)
	}
}
