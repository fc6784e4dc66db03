package live

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTables: every kind and every parameter is complete, and refers to existing entries.
func TestTables(t *testing.T) {
	used := map[string]bool{}
	for _, d := range Definitions() {
		if d.Kind == "" || d.Help == "" || strings.HasSuffix(d.Help, ".") || Lookup(d.Kind).Kind != d.Kind {
			t.Errorf("%q: %q", d.Kind, d.Help)
		}
		for _, name := range d.Parameters {
			used[name] = true
			if !slices.ContainsFunc(parameters, func(p Parameter) bool { return p.Name == name }) {
				t.Errorf("%s: there is no parameter %q", d.Kind, name)
			}
		}
		if f := d.Defaults(); d.Lasts() != (f.For == Duration(DefaultFor)) {
			t.Errorf("%s lasts %v", d.Kind, f.For)
		}
	}
	for _, p := range Parameters() {
		f := Fault{}
		switch p.Field(&f).(type) {
		case *string, *int, *float64, *Duration:
		default:
			t.Errorf("%s is a %T", p.Name, p.Field(&f))
		}
		if p.Help == "" || p.given(&f) || !used[p.Name] {
			t.Errorf("%s: %q", p.Name, p.Help)
		}
	}
	if Lookup("dance") != nil {
		t.Error("a kind that does not exist was found")
	}
}

// TestNewKind: a new kind needs one entry of the table only, here a kind without an actor.
func TestNewKind(t *testing.T) {
	began, ended := 0, 0
	kinds = append(kinds, Definition{
		Kind: "outage", Help: "Cut the node off", Parameters: []string{"for"},
		inject: func(*Live, *active) error { began++; return nil },
		end:    func(*Live, *active) { ended++ },
		struck: func(*active) uint64 { return 7 },
	})
	defer func() { kinds = kinds[:len(kinds)-1] }()
	play(t, func(t *testing.T, th *theatre) {
		r := th.must(t, Fault{Kind: "outage", For: Duration(5 * time.Second)})
		if r.Actor != "" || r.What.String() != "outage, for 5s" || began != 1 {
			t.Errorf("%+v, began %d times", r, began)
		}
		_, err := th.Inject(t.Context(), "a test", Fault{Kind: "outage"})
		if !errors.Is(err, ErrBusy) || !strings.HasPrefix(err.Error(), "outage: fault #1 of this kind is active until ") {
			t.Errorf("twice: %v", err)
		}
		time.Sleep(10 * time.Second)
		if got := th.record(t, r.ID); got.State != StateWell || got.EndedBy != "deadline" || got.Struck != 7 || ended != 1 {
			t.Errorf("%+v, ended %d times", got, ended)
		}
		th.drill(t, Plan{For: Duration(time.Second), Faults: []Step{{Fault: Fault{Kind: "outage", For: Duration(time.Second)}, At: 1}}})
		time.Sleep(10 * time.Second)
		if got := th.Status().Run; got.State != RunPassed || got.Faults != 1 || began != 2 {
			t.Errorf("%+v, began %d times", got, began)
		}
	})
	for want, fault := range map[string]Step{
		"actor: means nothing for outage": {Fault: Fault{Kind: "outage", Actor: "nat44"}},
		"of: means nothing for outage":    {Fault: Fault{Kind: "outage"}, Of: "service"},
		"rate: means nothing for outage":  {Fault: Fault{Kind: "outage", Rate: 1}},
	} {
		if err := (&Plan{Faults: []Step{fault}}).Check(); err == nil || err.Error() != "faults[0]."+want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
