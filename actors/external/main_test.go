package external_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/troupe-vpp/troupe/actors"
	"github.com/troupe-vpp/troupe/actors/actorstest"
	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/command"
	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/health"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// sources are Sources in memory, whose families say what the test says. The simulation uses them on
// one goroutine.
type sources struct {
	families []string
	saved    map[string][]byte
	last     map[string]external.Update // by family
	pending  []external.Update
	fails    bool  // Run returns an error, once
	broken   error // of Save
	park     func(ready func() bool)
}

func newSources(families ...string) *sources {
	return &sources{families: families, saved: map[string][]byte{}, last: map[string]external.Update{}}
}

// say has a family report something.
func (s *sources) say(u external.Update) { s.pending = append(s.pending, u) }

func (s *sources) Families() []string { return s.families }

func (s *sources) Load(context.Context) (map[string][]byte, error) { return maps.Clone(s.saved), nil }

func (s *sources) Save(_ context.Context, source string, document []byte) error {
	if s.broken != nil {
		return s.broken
	}
	if s.saved[source] = document; document == nil {
		delete(s.saved, source)
	}
	return nil
}

// Run satisfies external.Sources. As real sources do, it reads everything when it begins.
func (s *sources) Run(ctx context.Context, out func(external.Update)) error {
	for _, family := range s.families {
		if last, known := s.last[family]; known {
			out(last)
		}
	}
	for {
		s.park(func() bool { return ctx.Err() != nil || s.fails || len(s.pending) > 0 })
		switch {
		case ctx.Err() != nil:
			return nil
		case len(s.pending) > 0:
			next := s.pending[0]
			s.pending, s.last[next.Family] = s.pending[1:], next
			out(next)
		default:
			s.fails = false
			return errors.New("gave up")
		}
	}
}

// update is what a family says: sources and documents alternate.
func update(family string, pairs ...string) external.Update {
	u := external.Update{Family: family, Documents: map[string][]byte{}}
	for i := 0; i < len(pairs); i += 2 {
		u.Documents[pairs[i]] = document(pairs[i+1])
	}
	return u
}

// document puts a head before the rest of a document.
func document(rest string) []byte {
	return []byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", ` + rest + `}`)
}

// mapped is the rest of a document with one static mapping of a port.
func mapped(external, to string) string {
	return `"staticMappings": [{"external": "` + external + `", "to": ["` + to + `"]}]`
}

// world is a whole troupe with external configuration.
type world struct{ *actorstest.World }

// withExternal plays with external configuration from sources; with may change what the troupe is
// given.
func withExternal(t *testing.T, s *sources, play func(w *world), with ...func(*actors.Deps)) {
	t.Helper()
	config := actorstest.Config{Deps: func(d *actors.Deps) {
		s.park, d.External = d.Park, s
		for _, change := range with {
			change(d)
		}
	}}
	actorstest.Simulate(t, 1, config, func(w *actorstest.World) { play(&world{w}) })
}

// command gives a command and returns its answer.
func (w *world) command(source, rest string) error {
	w.Helper()
	m := &external.Apply{Source: source}
	if rest != "" {
		m.Document = document(rest)
	}
	return actorstest.Ask[*command.Result](w.World, address.External, m).Err
}

// entries shows external configuration as "name source state owner".
func (w *world) entries() string {
	w.Helper()
	var lines []string
	for _, e := range actorstest.Ask[*external.Page](w.World, address.External, &external.Query{}).Entries {
		lines = append(lines, strings.TrimSpace(e.Name+" "+e.Source+" "+e.State+" "+e.Owner))
	}
	return strings.Join(lines, "\n")
}

// read is what VPP holds of NAT44.
func (w *world) read() *nat44.State {
	w.Helper()
	state, err := nat44.Read(context.Background(), w.Reader())
	if err != nil {
		w.Fatal(err)
	}
	return state
}

// rows are the rows of external configuration that VPP holds, as "key>backend".
func (w *world) rows() string {
	w.Helper()
	state := w.read()
	var rows []string
	for _, k := range slices.SortedFunc(maps.Keys(state.Rows), rule.Key.Compare) {
		if row := state.Rows[k]; nat44.External(row.Tag) {
			rows = append(rows, k.String()+">"+row.Locals[0].Addr.String())
		}
	}
	return strings.Join(rows, " ")
}

// expect waits until something is as it should be.
func (w *world) expect(what, want string, got func() string) {
	w.Helper()
	w.Within(time.Minute, what, func() string {
		if is := got(); is != want {
			return "\n" + is + "\nwant\n" + want
		}
		return ""
	})
}

// failuresCostNothing fails the test where VPP is written to because an actor has failed.
func (w *world) failuresCostNothing(paths ...string) {
	w.Helper()
	for _, path := range paths {
		writes := w.Writes()
		if err := w.System.Kill(path); err != nil {
			w.Fatal(err)
		}
		w.Run(10 * time.Second)
		if after := w.Writes(); after != writes {
			w.Errorf("a failure of %s cost %d writes", path, after-writes)
		}
	}
}

// part is what readiness says of external configuration.
func (w *world) part() (part health.Part, ready bool) {
	report := w.Readiness.Load()
	if at := slices.IndexFunc(report.Parts, func(p health.Part) bool { return p.Name == "external" }); at >= 0 {
		part = report.Parts[at]
	}
	return part, report.Ready
}

// occupy lets another client of VPP take an address.
func (w *world) occupy(address string) {
	w.Helper()
	at := netip.MustParseAddrPort(address)
	w.Occupy(rule.Key{Addr: at.Addr(), Port: at.Port(), Proto: rule.TCP})
}
