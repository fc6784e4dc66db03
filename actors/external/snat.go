package external

import (
	"bytes"
	"encoding/json"
	"net/netip"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/actors/report"
	"github.com/troupe-vpp/troupe/actors/runtime"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/external"
)

// Place is the input of dynamic SNAT, from the interfaces actor; always complete and immutable.
type Place struct {
	// Set is the interface set.
	Set *messages.InterfaceSet
	// Hairpin is the twice-NAT address of the node.
	Hairpin netip.Addr
}

// snatState is the state of dynamic SNAT. SNAT is a layer like others; its document follows from
// the place. It is saved like others: a restart does not remove it from VPP, and knows the entries
// to remove when SNAT is switched off.
type snatState struct {
	known      bool // a Place was received
	generation uint64
	saved      []byte
	why        string // why there is no document
}

// beginSNAT starts from the saved document. If SNAT was switched off meanwhile, the document has the
// entries to remove from VPP.
func (x *externals) beginSNAT(c *runtime.Context) {
	last := x.layers[external.SourceSNAT]
	if last == nil {
		x.askPlace(c)
		return
	}
	x.snat.saved = last.document
	if x.config.SNAT.Enabled {
		x.askPlace(c)
		return
	}
	x.retire(external.Merge([]*external.Layer{last.Layer}))
	x.adopt(c, external.SourceSNAT, nil)
	report.Event(c, &messages.Event{Kind: "external", Object: external.SourceSNAT, Text: "switched off"})
}

// askPlace asks the interfaces actor to repeat its state.
func (x *externals) askPlace(c *runtime.Context) {
	if x.config.SNAT.Enabled {
		c.Send(c.PID(address.Interfaces), &messages.Resync{Sibling: "external", Incarnation: c.Incarnation()})
	}
}

// placed derives the document of SNAT from the place, or says why there is none.
func (x *externals) placed(c *runtime.Context, m *Place) {
	if !x.loaded || m.Set.GetGeneration() < x.snat.generation {
		return // beginSNAT asks for it
	}
	var document []byte
	why := ""
	doc, err := x.config.SNAT.Document(m.Set, m.Hairpin)
	if err == nil {
		document, err = json.Marshal(doc)
	}
	if err != nil {
		document, why = nil, err.Error()
	}
	first := !x.snat.known
	x.snat.known, x.snat.generation = true, m.Set.GetGeneration()
	changed := x.adopt(c, external.SourceSNAT, document)
	if why != "" {
		x.problems[external.SourceSNAT] = "refused: " + why
	}
	if changed || why != x.snat.why {
		text := "pods leave with an address of the node"
		if why != "" {
			text = "refused, nothing is translated"
		}
		report.Event(c, &messages.Event{Kind: "external", Object: external.SourceSNAT, Text: text, Error: why})
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

// forgetSNAT deletes the saved document when its entries have left VPP. Before, only the document
// says whose they are.
func (x *externals) forgetSNAT(c *runtime.Context) {
	gone := x.layers[external.SourceSNAT] == nil && (x.snat.known || !x.config.SNAT.Enabled)
	if x.snat.saved != nil && gone && x.status != nil && x.status.Settled && x.acknowledged() {
		x.saveSNAT(c, nil)
	}
}

func (x *externals) saveSNAT(c *runtime.Context, document []byte) {
	if !bytes.Equal(x.snat.saved, document) && x.config.Sources != nil {
		x.save(c, save{source: external.SourceSNAT, document: document})
	}
	x.snat.saved = document
}
