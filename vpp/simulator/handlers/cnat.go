package handlers

import (
	"go.fd.io/govpp/binapi/cnat"

	"github.com/troupe-vpp/troupe/vpp/simulator/pool"
	"github.com/troupe-vpp/troupe/vpp/simulator/vnet"
)

// registerCNAT registers the messages of the cnat plugin. So far there is only the input that crashes VPP; everything else returns
// "unimplemented".
func registerCNAT(r Registry) {
	write(r, cnatTranslationUpdate)
	Read(r, cnatTranslationDump)
}

// cnatTranslationUpdate crashes VPP with a translation without paths: VPP allocates
// for 2^32 of them.
func cnatTranslationUpdate(c *Call, req *cnat.CnatTranslationUpdate) {
	if len(req.Translation.Paths) == 0 {
		c.Die("cnat_translation_update without paths")
		return
	}
	c.Reply(&cnat.CnatTranslationUpdateReply{Retval: vnet.RetUnimplemented, ID: pool.None})
}

// cnatTranslationDump has no details: the model keeps no translations.
func cnatTranslationDump(*Call, *cnat.CnatTranslationDump) {}
