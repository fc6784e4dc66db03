package server

import (
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// maxChildren is the number of children of one actor in a tree, because 10,000 services would make
// it unreadable. Below counts all.
const maxChildren = 50

// tree makes trees of actors. An actor without its parent in the list is a root.
func tree(actors []api.Actor) []*api.TreeNode {
	var roots []*api.TreeNode
	known := map[string]*api.TreeNode{}
	byPath := func(a, b api.Actor) int { return strings.Compare(a.Path, b.Path) }
	if !slices.IsSortedFunc(actors, byPath) { // the actors of an agent are sorted
		actors = slices.SortedFunc(slices.Values(actors), byPath)
	}
	for i := range actors {
		a := &actors[i]
		node := &api.TreeNode{Actor: *a, Name: a.Path[strings.LastIndexByte(a.Path, '/')+1:]}
		known[a.Path] = node
		parent := known[parentOf(a.Path)]
		if parent == nil {
			roots = append(roots, node)
			continue
		}
		if len(parent.Children) < maxChildren {
			parent.Children = append(parent.Children, node)
		}
		for up := parent; up != nil; up = known[parentOf(up.Path)] {
			up.Below++
		}
	}
	return roots
}

// parentOf returns the path of the parent; "" for a root.
func parentOf(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return ""
	}
	return path[:i]
}
