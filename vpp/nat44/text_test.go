package nat44

import (
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

func TestRowState(t *testing.T) {
	row := withAffinity(newRow("10.96.0.1:80/TCP", "10.1.1.1:8080", "10.1.1.2:8080"), 60)
	want := &messages.RowState{
		Renderer: "nat44", Vip: "10.96.0.1:80/TCP", Flags: []string{"out2in-only", "self-twice-nat"}, AffinitySeconds: 60, InSync: true,
		Locals: []*messages.RowLocal{{Address: "10.1.1.1:8080", Weight: 7}, {Address: "10.1.1.2:8080", Weight: 7}},
	}
	check(t, "in sync", want, row.State(true))
}

func TestDescribe(t *testing.T) {
	check(t, "texts", []string{
		"enable NAT44 for 1000 sessions",
		"enable forwarding",
		"set timeouts udp=60 tcp-established=7440 tcp-transitory=240 icmp=60",
		"add twice-NAT address 10.1.1.254",
		"add roles inside+outside to interface 3",
		"add row 10.96.0.1:80/TCP out2in-only,self-twice-nat -> 2 backends",
		"add local 10.1.1.3:80 weight 7 to row 10.96.0.1:80/TCP",
		"delete local 10.1.1.3:80 from row 10.96.0.1:80/TCP",
		"delete row 10.96.0.1:80/TCP",
		"delete roles inside+outside from interface 3",
		"delete twice-NAT address 10.1.1.254",
	}, describe(everyOp()))
	seen := map[string]bool{}
	for _, op := range everyOp() {
		if name := op.Verb.String(); seen[name] || name == "" {
			t.Errorf("the name %q is not unique", name)
		} else {
			seen[name] = true
		}
	}
	if got := (Op{Verb: 77}).String(); got != "verb-77" {
		t.Errorf("an unknown verb is %q", got)
	}
	for roles, want := range map[Roles]string{0: "none", Inside: "inside", Outside: "outside", Both: "inside+outside"} {
		if roles.String() != want {
			t.Errorf("roles %d are %q, want %q", roles, roles, want)
		}
	}
}
