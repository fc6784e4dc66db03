package external_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/kube"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// TestExternalStorms: layers come, change and go in any order, services take addresses and give
// them back, actors fail and VPP as well. In the end VPP holds the merge of the layers, except for
// frontends of services.
func TestExternalStorms(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test
			s := newSources("file", "etcd:")
			s.say(update("file"))
			s.say(update("etcd:"))
			withExternal(t, s, func(w *world) {
				w.Settled()
				documents, served := map[string]string{}, map[string]bool{}
				for range 25 {
					w.upset(r, s, documents, served)
				}
				w.Stream.Connect()
				w.expect("VPP", expected(t, documents, served), w.rows)
				w.Settled()
				w.Rests(3 * time.Minute)
			})
		})
	}
}

// upset does one thing, and enters it into what is wanted if it has happened.
func (w *world) upset(r *rand.Rand, s *sources, documents map[string]string, served map[string]bool) {
	var texts []string
	for i := range 4 {
		if r.IntN(2) == 0 {
			texts = append(texts, fmt.Sprintf(`{"external": "10.96.0.%d:80/TCP", "to": ["10.1.1.%d:80"]}`, i, 2+r.IntN(3)))
		}
	}
	rest := fmt.Sprintf(`"priority": %d, "staticMappings": [%s]`, r.IntN(4), strings.Join(texts, ", "))
	name := fmt.Sprint("s", r.IntN(4))
	switch r.IntN(8) {
	case 0, 1:
		if w.command("ops", rest) == nil {
			documents["ops"] = rest
		}
	case 2:
		if w.command("ops", "") == nil {
			delete(documents, "ops")
		}
	case 3:
		s.say(update("file", "file", rest))
		documents["file"] = rest
	case 4:
		delete(documents, "etcd:a")
		if r.IntN(3) == 0 {
			s.say(update("etcd:"))
			break
		}
		s.say(update("etcd:", "etcd:a", rest))
		documents["etcd:a"] = rest
	case 5:
		if served[name] {
			w.Source.Change(func(s *kube.Store) { s.Delete("Service", "default/"+name) })
		} else {
			w.Source.Serve(name, "10.96.0."+name[1:], "10.1.1.5")
		}
		served[name] = !served[name]
	case 6:
		path := []string{address.External, address.Renderer("nat44"), address.Registry, address.Link}[r.IntN(4)]
		_ = w.System.Kill(path) // it may be starting
	default:
		if w.Stream.Boot() != "" {
			w.CrashVPP()
		}
		w.Stream.Connect()
	}
	w.Run(time.Duration(r.IntN(5000)) * time.Millisecond)
}

// expected are the rows of external configuration that VPP should hold.
func expected(t *testing.T, documents map[string]string, served map[string]bool) string {
	t.Helper()
	var all []*layers.Layer
	for source, rest := range documents {
		l, err := layers.Decode(document(rest), source)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	var rows []nat44.Row
	for _, of := range layers.Merge(all).Rows(nat44.Config{}) {
		rows = append(rows, of...)
	}
	slices.SortFunc(rows, func(a, b nat44.Row) int { return a.Key.Compare(b.Key) })
	var texts []string
	for _, row := range rows {
		if address := row.Addr.String(); !served["s"+address[strings.LastIndexByte(address, '.')+1:]] {
			texts = append(texts, row.Key.String()+">"+row.Locals[0].Addr.String())
		}
	}
	return strings.Join(texts, " ")
}
