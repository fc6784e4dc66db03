package link

import (
	"testing"

	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/acl"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/nat44_ed"
	"go.fd.io/govpp/binapi/vpe"
)

// TestStatusFindsTheReturnValue at any position in a reply.
func TestStatusFindsTheReturnValue(t *testing.T) {
	for _, c := range []struct {
		reply api.Message
		want  int32
	}{
		{&nat44_ed.Nat44AddDelLbStaticMappingReply{Retval: -81}, -81},
		{&nat44_ed.Nat44AddDelLbStaticMappingReply{}, 0},
		{&acl.ACLAddReplaceReply{ACLIndex: 7, Retval: -6}, -6},
		{&acl.ACLAddReplaceReply{ACLIndex: 7}, 0},
		{&vpe.ShowVersionReply{Retval: -1}, -1},
		{&acl.ACLDetails{ACLIndex: 7}, 0},
		{&memclnt.ControlPingReply{}, 0},
	} {
		err := newIncoming(c.reply, 1).status("request", c.reply)
		if got, _ := Retval(err); got != c.want || (err == nil) != (c.want == 0) {
			t.Errorf("%s: %v, want %d", c.reply.GetMessageName(), err, c.want)
		}
	}
}
