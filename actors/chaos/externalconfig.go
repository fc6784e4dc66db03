package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/external"
	"github.com/troupe-vpp/troupe/actors/runtime"
	layers "github.com/troupe-vpp/troupe/vpp/external"
	"github.com/troupe-vpp/troupe/vpp/nat44"
	"github.com/troupe-vpp/troupe/vpp/rule"
)

// Families of external configuration.
const (
	fileFamily = "file"
	etcdFamily = "etcd:"
)

// documents is the external configuration. The last good document of each source is in force.
type documents struct {
	texts   map[string][]byte // by source, as JSON
	good    map[string]layer
	last    map[string][]byte // the text of each good layer
	away    map[string]bool   // families that cannot be read
	slow    time.Duration     // duration of a read
	broken  bool              // the watch of the documents ends
	version int
	read    time.Time // the end of the last slow read
}

// layer is a good document.
type layer struct {
	mappings   map[frontend][]netip.Addr
	identities []netip.AddrPort
}

// configurationSources are the sources of external configuration, the highest priority first.
var configurationSources = []string{"etcd:a", "etcd:b", fileFamily}

// mappings is the number of addresses in external configuration; services want the first of them,
// too.
const mappings = 6

// write changes the document of a source: a good one, one with an error, or none.
func (d *documents) write(r *rand.Rand) {
	source := configurationSources[r.IntN(len(configurationSources))]
	d.version++
	switch r.IntN(6) {
	case 0:
		delete(d.texts, source)
		delete(d.good, source)
		delete(d.last, source)
		return
	case 1:
		d.texts[source] = []byte(`{"apiVersion": "troupe.dev/v1alpha1", "kind": "ExternalConfiguration", "staticMappings": 7}`)
		return
	}
	l := layer{mappings: map[frontend][]netip.Addr{}}
	text := layers.Document{APIVersion: layers.APIVersion, Kind: layers.Kind}
	for n := range mappings {
		if r.IntN(3) > 0 {
			continue
		}
		endpoints := randomEndpoints(r)
		if len(endpoints) == 0 {
			continue
		}
		at := netip.AddrPortFrom(balancerIP(balancerIPs-1+n*10), servicePort)
		l.mappings[at] = endpoints
		m := layers.StaticMapping{External: at.String() + "/TCP"}
		for _, a := range endpoints {
			m.To = append(m.To, netip.AddrPortFrom(a, endpointPort).String())
		}
		text.StaticMappings = append(text.StaticMappings, m)
	}
	if r.IntN(2) == 0 {
		at := netip.AddrPortFrom(netip.MustParseAddr(nodeIP), uint16(4000+r.IntN(3)))
		l.identities = append(l.identities, at)
		text.IdentityMappings = []string{at.String() + "/TCP"}
	}
	document, err := json.Marshal(&text)
	if err != nil {
		panic(err)
	}
	d.texts[source], d.good[source], d.last[source] = document, l, document
}

// mend ends all faults. It replaces documents with an error by the last good ones, which the agent
// may never have read.
func (d *documents) mend() {
	d.texts = maps.Clone(d.last)
	d.slow, d.broken = 0, false
	clear(d.away)
	d.version++
}

// wanted merges the mappings of all sources by priority.
func (d *documents) wanted() map[frontend][]netip.Addr {
	all := map[frontend][]netip.Addr{}
	for _, source := range slices.Backward(configurationSources) {
		maps.Copy(all, d.good[source].mappings)
	}
	return all
}

// externalWanted are the mappings of external configuration; a world with threads has none.
func (w *world) externalWanted() map[frontend][]netip.Addr {
	if w.documents == nil {
		return nil
	}
	return w.documents.wanted()
}

// identities are the identity mappings of all sources.
func (d *documents) identities() map[netip.AddrPort]bool {
	all := map[netip.AddrPort]bool{}
	for _, l := range d.good {
		for _, at := range l.identities {
			all[at] = true
		}
	}
	return all
}

// externalSources is the external.Sources of a simulated process.
type externalSources struct {
	*documents
	sim   *runtime.Sim
	saved map[string][]byte // outlives the process
}

var _ external.Sources = (*externalSources)(nil)

// Families satisfies external.Sources.
func (*externalSources) Families() []string { return []string{fileFamily, etcdFamily} }

// Load satisfies external.Sources.
func (o *externalSources) Load(context.Context) (map[string][]byte, error) {
	return maps.Clone(o.saved), nil
}

// Save satisfies external.Sources.
func (o *externalSources) Save(_ context.Context, source string, document []byte) error {
	if o.saved[source] = document; document == nil {
		delete(o.saved, source)
	}
	return nil
}

// Run satisfies external.Sources.
func (o *externalSources) Run(ctx context.Context, out func(external.Update)) error {
	over := func() bool { return ctx.Err() != nil }
	for seen := -1; ; {
		o.sim.Park(func() bool { return over() || o.broken || o.version != seen })
		if o.slow > 0 {
			o.sim.Sleep(o.slow, over)
			o.read = o.sim.Now()
		}
		switch {
		case over():
			return nil
		case o.broken:
			o.broken = false
			return errBroken
		}
		seen = o.version
		for _, family := range o.Families() {
			out(o.update(family))
		}
	}
}

// update reads a family.
func (o *externalSources) update(family string) external.Update {
	u := external.Update{Family: family, Documents: map[string][]byte{}}
	if o.away[family] {
		u.Err = errBroken
		return u
	}
	for source, text := range o.texts {
		if strings.HasPrefix(source, family) {
			u.Documents[source] = text
		}
	}
	return u
}

// wrongOutside compares the identity mappings in VPP with external configuration and SNAT, and
// checks that every interface of a pod has its roles (I1).
func (w *world) wrongOutside(state *nat44.State) (wrong []string) {
	if w.documents == nil {
		return nil
	}
	want := map[rule.Key]bool{}
	for at := range w.documents.identities() {
		want[rule.Key{Addr: at.Addr(), Port: at.Port(), Proto: protoTCP}] = true
	}
	for _, key := range w.exempt() {
		want[key] = true
	}
	for key, row := range state.Rows {
		switch {
		case row.Kind != nat44.Identity:
		case !want[key]:
			wrong = append(wrong, fmt.Sprintf("I1: VPP has an identity mapping of %s, which neither a document nor SNAT wants", key))
		default:
			delete(want, key)
		}
	}
	for name, index := range w.vpp.VPP.Interfaces() {
		if strings.HasPrefix(name, podPrefix) && state.Roles[index] == 0 {
			wrong = append(wrong, fmt.Sprintf("I1: interface %s has no roles", name))
		}
	}
	for key := range want {
		wrong = append(wrong, fmt.Sprintf("I1: VPP lacks the identity mapping of %s", key))
	}
	wrong = append(wrong, w.wrongSNAT(state)...)
	slices.Sort(wrong)
	return wrong
}

// hideDocuments makes a family unreadable for a while.
func (w *world) hideDocuments(r *rand.Rand) {
	family := []string{fileFamily, etcdFamily}[r.IntN(2)]
	hide := func(away bool) {
		w.documents.away[family] = away
		w.documents.version++
	}
	hide(true)
	w.documents.write(r)
	w.later(seconds(r, 8), func() { hide(false) })
}
