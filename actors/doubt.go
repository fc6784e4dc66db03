package actors

import (
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// doubt decides from digests that come at intervals whether something was lost between two actors. One difference may be a message that is still
// under way. The same difference twice is not: what is under way changes from one digest to the next, what was lost stays the same.
type doubt struct {
	last uint64
	row  int
}

// mostDoubts is how many differences in a row are too many, even if each is another one: somebody who is always told of changes may miss one as well.
const mostDoubts = 12

// persists takes the difference between two digests, 0 = none, and reports whether something has to be done about it.
func (d *doubt) persists(difference uint64) bool {
	if difference == 0 {
		*d = doubt{}
		return false
	}
	same := d.row > 0 && difference == d.last
	d.last = difference
	if d.row++; same || d.row >= mostDoubts {
		*d = doubt{}
		return true
	}
	return false
}

// difference compares two digests; 0 = they say the same.
func difference(a, b *messages.Digest) uint64 {
	if sameDigest(a, b) {
		return 0
	}
	rest := (a.GetServices()-b.GetServices())<<markBits ^ a.GetNodeGeneration() ^ b.GetNodeGeneration()
	return a.GetHash() ^ b.GetHash() ^ kube.DigestHash("", rest) | 1
}
