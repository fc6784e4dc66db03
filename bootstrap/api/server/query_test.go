package server

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// TestPagesCoverTheList: whatever the order and the size of the pages, all pages together are the
// list, each item once and in order; also when items come and go between two pages, each item that
// stays is seen exactly once.
func TestPagesCoverTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []api.Actor
		for i := range rapid.IntRange(0, 40).Draw(t, "actors") {
			all = append(all, api.Actor{Path: fmt.Sprintf("agent/%02d", i), Pending: rapid.Uint64Range(0, 3).Draw(t, "pending")})
		}
		order := rapid.SampledFrom([]string{"", "path", "pending"}).Draw(t, "sort")
		q := &listQuery{limit: rapid.IntRange(1, 7).Draw(t, "limit"), sort: order}
		seen := map[string]bool{}
		var last *api.Actor
		for range len(all) + 2 {
			p := pageActors(all, q)
			for _, a := range p.Items {
				if seen[a.Path] {
					t.Fatalf("%s twice", a.Path)
				}
				if order == "pending" && last != nil && a.Pending > last.Pending {
					t.Fatalf("%s with %d pending after %d", a.Path, a.Pending, last.Pending)
				}
				seen[a.Path], last = true, &a
			}
			if p.Next == "" {
				break
			}
			var err error
			if q.cursor, err = decodeCursor(p.Next); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "remove the last one seen") {
				gone := last.Path
				all = deleteActor(all, gone)
			}
		}
		for _, a := range all {
			if !seen[a.Path] {
				t.Fatalf("%s is on no page", a.Path)
			}
		}
	})
}

func deleteActor(all []api.Actor, path string) []api.Actor {
	var out []api.Actor
	for _, a := range all {
		if a.Path != path {
			out = append(out, a)
		}
	}
	return out
}

func TestTree(t *testing.T) {
	roots := tree([]api.Actor{
		{Path: "agent/b/y"}, {Path: "agent"}, {Path: "agent/b"}, {Path: "agent/a"}, {Path: "agent/b/x"}, {Path: "lost/child"},
	})
	var lines []string
	var walk func(n *api.TreeNode, depth int)
	walk = func(n *api.TreeNode, depth int) {
		lines = append(lines, fmt.Sprintf("%s%s %d", strings.Repeat(" ", depth), n.Name, n.Below))
		for _, c := range n.Children {
			walk(c, depth+1)
		}
	}
	for _, r := range roots {
		walk(r, 0)
	}
	if got, want := strings.Join(lines, "\n"), "agent 4\n a 0\n b 2\n  x 0\n  y 0\nchild 0"; got != want {
		t.Errorf("tree:\n%s\nwant:\n%s", got, want)
	}
}

// TestTreeOfManyServices: the tree stays small and still counts all services.
func TestTreeOfManyServices(t *testing.T) {
	actors := []api.Actor{{Path: "agent"}}
	for i := range 10_000 {
		actors = append(actors, api.Actor{Path: fmt.Sprintf("agent/%05d", i)})
	}
	root := tree(actors)[0]
	if root.Below != 10_000 || len(root.Children) != maxChildren {
		t.Errorf("%d below, %d children", root.Below, len(root.Children))
	}
}

func TestSplitActor(t *testing.T) {
	for _, tt := range []struct {
		path, actor, what string
		bad               bool
	}{
		{path: "agent", actor: "agent"},
		{path: "agent/world/services/default~web/state", actor: "agent/world/services/default~web", what: "state"},
		{path: "agent/x/mailbox", actor: "agent/x", what: "mailbox"},
		{path: "agent/x/failures", actor: "agent/x", what: "failures"},
		{path: "agent/x:kill", actor: "agent/x", what: ":kill"},
		{path: "agent/state", actor: "agent", what: "state"},
		{path: "", bad: true},
		{path: ":kill", bad: true},
		{path: "agent//x", bad: true},
		{path: "agent/", bad: true},
		{path: strings.Repeat("a", 513), bad: true},
	} {
		actor, what, err := splitActor(tt.path)
		if actor != tt.actor || what != tt.what || (err != nil) != tt.bad {
			t.Errorf("%q = %q, %q, %v", tt.path, actor, what, err)
		}
	}
}

// FuzzQuery: no query or path makes a handler panic or answer with anything but a decoded query or
// an error; what is decoded is in range.
func FuzzQuery(f *testing.F) {
	f.Add("limit=10&cursor="+cursor{Sort: "pending", Value: 3, Key: "agent/x"}.encode()+"&sort=pending&kind=service", "agent/x:kill")
	f.Add("before=3&limit=1000&kind=a&object=b%2Fc", "agent/a/state")
	f.Add("%zz&;=&limit=-1", "//:")
	f.Fuzz(func(t *testing.T, raw, path string) {
		if q, err := parseList(raw, sortNames(), filters{"kind": nil, "state": nil, "under": nil}); err == nil {
			if q.limit < 1 || q.limit > api.MaxLimit {
				t.Fatalf("limit %d", q.limit)
			}
			actors := []api.Actor{{Path: "agent"}, {Path: "agent/x", Pending: 3}, {Path: "agent/y"}}
			if p := pageActors(actors, q); len(p.Items) > q.limit || p.Total > len(actors) {
				t.Fatalf("page %+v", p)
			}
		} else if status(err) != 400 {
			t.Fatalf("error %v is not the caller's", err)
		}
		if q, err := parseEvents(raw); err == nil && (q.Limit < 1 || q.Limit > api.MaxLimit) {
			t.Fatalf("limit %d", q.Limit)
		}
		if actor, _, err := splitActor(path); err == nil && (actor == "" || len(actor) > 512) {
			t.Fatalf("actor %q", actor)
		}
	})
}
