package external

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
)

// TestExternalStorms: layers come, change and go in any order, services take addresses and give them back, actors die and VPP as well. In the end
// VPP holds what a merge of the layers says, but for what services have.
func TestExternalStorms(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test
			s := newPantry("file", "etcd:")
			s.first = append(s.first, says("file"), says("etcd:"))
			withExternal(t, s, func(h *house) {
				h.settle(time.Minute)
				layers, served := map[string]string{}, map[string]bool{}
				for range 25 {
					h.upset(r, s, layers, served)
				}
				if !h.wire.state.GetUp() {
					h.wire.connect()
				}
				h.expect("VPP", expected(t, layers, served), h.outsideRows)
				h.settle(5 * time.Minute)
				h.quiet()
			})
		})
	}
}

// upset does one thing, and enters it into what is wanted if it has happened.
func (h *house) upset(r *rand.Rand, s *pantry, layers map[string]string, served map[string]bool) {
	var texts []string
	for i := range 4 {
		if r.IntN(2) == 0 {
			texts = append(texts, fmt.Sprintf(`{"external": "10.96.0.%d:80/TCP", "to": ["10.1.1.%d:80"]}`, i, 2+r.IntN(3)))
		}
	}
	document := fmt.Sprintf(`"priority": %d, "staticMappings": [%s]`, r.IntN(4), strings.Join(texts, ", "))
	name := fmt.Sprint("s", r.IntN(4))
	switch r.IntN(8) {
	case 0, 1:
		if h.command("ops", document) == nil {
			layers["ops"] = document
		}
	case 2:
		if h.command("ops", "") == nil {
			delete(layers, "ops")
		}
	case 3:
		s.updates <- says("file", "file", document)
		layers["file"] = document
	case 4:
		delete(layers, "etcd:a")
		if r.IntN(3) == 0 {
			s.updates <- says("etcd:")
			break
		}
		s.updates <- says("etcd:", "etcd:a", document)
		layers["etcd:a"] = document
	case 5:
		if served[name] {
			h.cluster.change(func() { delete(h.cluster.services, "ns/"+name) })
		} else {
			h.serve(name, "10.96.0."+name[1:], "10.1.1.5")
		}
		served[name] = !served[name]
	case 6:
		path := []string{PathExternal, PathRenderer(nat), PathRegistry, PathLink}[r.IntN(4)]
		_ = h.sys.Kill(path) // it may be starting
	default:
		if h.wire.state.GetUp() {
			h.wire.crash()
		}
		h.wire.connect()
	}
	h.run(time.Duration(r.IntN(5000)) * time.Millisecond)
}

// expected are the rows of external configuration that VPP should hold.
func expected(t *testing.T, documents map[string]string, served map[string]bool) string {
	t.Helper()
	var layers []*external.Layer
	for source, document := range documents {
		l, err := external.Decode(externally(document), source)
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	var rows []nat44.Row
	for _, of := range external.Merge(layers).Rows(nat44.Config{}) {
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
