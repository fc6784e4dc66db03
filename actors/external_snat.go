package actors

import (
	"bytes"
	"encoding/json"
	"net/netip"

	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
)

// snatPlace tells external configuration what SNAT depends on; always complete, repeated from time to time, and immutable.
type snatPlace struct {
	set     *messages.InterfaceSet
	hairpin netip.Addr
}

// snatState is what external configuration knows of dynamic SNAT, which is a layer like others: its document follows from the place. Like
// those it is kept, so that a restart neither takes anything away nor forgets what has to go when SNAT is switched off.
type snatState struct {
	known      bool // the place has been heard of
	generation uint64
	kept       []byte
	why        string // there is none
}

// beginSNAT goes on from what an earlier run has kept. Where SNAT is not wanted any more, it is still known what has to leave VPP.
func (x *externals) beginSNAT(c *runtime.Context) {
	last := x.layers[external.SourceSNAT]
	if last == nil {
		x.askPlace(c)
		return
	}
	x.snat.kept = last.document
	if x.deps.SNAT.Enabled {
		x.askPlace(c)
		return
	}
	x.retire(external.Merge([]*external.Layer{last.Layer}))
	x.adopt(c, external.SourceSNAT, nil)
	record(c, &messages.Event{Kind: "external", Object: external.SourceSNAT, Text: "switched off"})
}

// askPlace has the interfaces repeat themselves.
func (x *externals) askPlace(c *runtime.Context) {
	if x.deps.SNAT.Enabled {
		c.Send(c.PID(PathInterfaces), &messages.Resync{Sibling: "external", Incarnation: c.Incarnation()})
	}
}

// placed works out what SNAT wants, and says why where it wants nothing.
func (x *externals) placed(c *runtime.Context, m *snatPlace) {
	if !x.loaded || m.set.GetGeneration() < x.snat.generation {
		return // it is repeated; overtaken
	}
	var document []byte
	why := ""
	doc, err := x.deps.SNAT.Document(m.set, m.hairpin)
	if err == nil {
		document, err = json.Marshal(doc)
	}
	if err != nil {
		document, why = nil, err.Error()
	}
	first := !x.snat.known
	x.snat.known, x.snat.generation = true, m.set.GetGeneration()
	changed := x.adopt(c, external.SourceSNAT, document)
	if why != "" {
		x.problems[external.SourceSNAT] = "refused: " + why
	}
	if changed || why != x.snat.why {
		record(c, &messages.Event{Kind: "external", Object: external.SourceSNAT, Text: snatText(why), Error: why})
		if why != "" {
			c.Logger().Warn("dynamic SNAT is refused", "err", why)
		}
	}
	x.snat.why = why
	if changed && document != nil {
		x.saveSNAT(c, document)
	}
	if first || changed {
		x.publish(c)
	}
}

func snatText(why string) string {
	if why != "" {
		return "refused, nothing is translated"
	}
	return "pods leave with an address of the node"
}

// keepSNAT forgets what was kept when nothing of it is in VPP any more, not earlier: only who knows that it was ours takes it away.
func (x *externals) keepSNAT(c *runtime.Context) {
	gone := x.layers[external.SourceSNAT] == nil && (x.snat.known || !x.deps.SNAT.Enabled)
	if x.snat.kept != nil && gone && x.status != nil && x.status.settled && x.status.generation == x.wants.generation {
		x.saveSNAT(c, nil)
	}
}

func (x *externals) saveSNAT(c *runtime.Context, document []byte) {
	if !bytes.Equal(x.snat.kept, document) && x.deps.External != nil {
		x.save(c, externalSave{source: external.SourceSNAT, document: document})
	}
	x.snat.kept = document
}
