package simulator

import "go.fd.io/govpp/binapi/cnat"

// registerCNAT registers the messages of the cnat plugin. So far there is only
// the input that kills VPP; everything else answers "unimplemented".
func registerCNAT(r registry) {
	write(r, cnatTranslationUpdate)
	read(r, cnatTranslationDump)
}

// cnatTranslationUpdate dies from a translation without paths: VPP allocates
// for 2^32 of them.
func cnatTranslationUpdate(c *call, req *cnat.CnatTranslationUpdate) {
	if len(req.Translation.Paths) == 0 {
		c.die("cnat_translation_update without paths")
		return
	}
	c.reply(&cnat.CnatTranslationUpdateReply{Retval: retUnimplemented, ID: none})
}

func cnatTranslationDump(*call, *cnat.CnatTranslationDump) {}
