package acl

import (
	"testing"

	"github.com/troupe-vpp/troupe/messages"
)

// TestAppliesTo is the whole table: where both kinds of clients enter only rules for both count.
func TestAppliesTo(t *testing.T) {
	for _, c := range []struct {
		rule, at Class
		want     bool
	}{
		{Remote, Remote, true},
		{Local, Remote, false},
		{Any, Remote, true},
		{Remote, Local, false},
		{Local, Local, true},
		{Any, Local, true},
		{Remote, Any, false},
		{Local, Any, false},
		{Any, Any, true},
		{Any, 0, false},
		{0, Remote, false},
		{Any, 4, false},
		{Any, 7, false},
	} {
		if got := c.rule.appliesTo(c.at); got != c.want {
			t.Errorf("rule for %s on an interface of %s (%d): %v", c.rule, c.at, c.at, got)
		}
	}
}

func TestTags(t *testing.T) {
	for _, class := range classes {
		got, ok := classOfTag(DenyTag(class))
		if !ok || got != class || !Ours(DenyTag(class)) {
			t.Errorf("%s: %s, %v", DenyTag(class), got, ok)
		}
	}
	for _, class := range classes {
		if got, ok := classOfTag(RecentTag(class)); !ok || got != class || !Ours(RecentTag(class)) {
			t.Errorf("%s: %s, %v", RecentTag(class), got, ok)
		}
	}
	check(t, "tag", "troupe/deny/remote", DenyTag(Remote))
	check(t, "tag", "troupe/deny/remote/recent", RecentTag(Remote))
	for _, tag := range []string{"", PermitTag, DenyTag(0), "deny/any", "troupe/deny/", "troupe/deny/any/1", "troupe/recent"} {
		if class, ok := classOfTag(tag); ok {
			t.Errorf("%q is for %s", tag, class)
		}
	}
	if Ours("other client") || Ours("") || !Ours("troupe/of another version") {
		t.Error("whose tags are ours?")
	}
}

func TestClasses(t *testing.T) {
	set := &messages.InterfaceSet{Interfaces: []*messages.Interface{
		{SwIfIndex: 0, Kind: messages.InterfaceKind_INTERFACE_INTERNAL},
		{SwIfIndex: 1, Kind: messages.InterfaceKind_INTERFACE_UPLINK, Frontend: true},
		{SwIfIndex: 2, Kind: messages.InterfaceKind_INTERFACE_POD, Frontend: true, Local: true},
		{SwIfIndex: 3, Kind: messages.InterfaceKind_INTERFACE_POD, Local: true},
		{SwIfIndex: 4, Kind: messages.InterfaceKind_INTERFACE_OTHER, Frontend: true, Name: "vxlan0"},
		{SwIfIndex: 5, Kind: messages.InterfaceKind_INTERFACE_OTHER, Frontend: true, Local: true, Name: "host"},
	}}
	check(t, "classes", map[uint32]Class{1: Remote, 2: Local, 4: Remote, 5: Local}, Classes(set))
	check(t, "of nothing", map[uint32]Class{}, Classes(nil))
}
