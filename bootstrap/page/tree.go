package page

import (
	"net/http"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// Places of the drawing, in its units.
const (
	rowHeight = 24
	indent    = 22
	// mostDrawn is how many children of one actor are drawn, the worst ones; the others are counted.
	mostDrawn = 25
)

// drawing is the supervision tree as lines of a picture, from top to bottom.
type drawing struct {
	Nodes  []drawn
	Height int
	Total  int
}

// drawn is one actor in its place, or the number of those that are left out.
type drawn struct {
	api.Actor
	Name string
	// More counts siblings that are not drawn; this is no actor then, and Path is that of the parent.
	More int
	// X and Y are the place of its mark, Above that of its parent: a line leads from there.
	X, Y, Above int
	// Waiting is the length of the bar of its mailbox.
	Waiting int
}

// tree draws the live supervision tree.
func (h *handler) tree(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	all, err := h.Source.Actors(r.Context())
	if err != nil {
		return nil, err
	}
	return draw(all), nil
}

// draw places actors, which are ordered by path, so that a parent comes before its children. Children of one parent keep their order, but for dynamic ones,
// of which the worst come first.
func draw(all []api.Actor) *drawing {
	children := map[string][]api.Actor{}
	known := map[string]bool{}
	for _, a := range all {
		known[a.Path] = true
	}
	for _, a := range all {
		parent := a.Path[:max(0, strings.LastIndexByte(a.Path, '/'))]
		if !known[parent] {
			parent = ""
		}
		children[parent] = append(children[parent], a)
	}
	d := &drawing{Total: len(all)}
	d.place(children, "", -1, 0)
	d.Height = len(d.Nodes)*rowHeight + 8
	return d
}

// place draws the children of one actor, and theirs.
func (d *drawing) place(children map[string][]api.Actor, parent string, depth, above int) {
	shown := children[parent]
	more := max(0, len(shown)-mostDrawn)
	if more > 0 {
		shown = slices.Clone(shown)
		slices.SortFunc(shown, worstFirst)
		shown = shown[:mostDrawn]
	}
	for _, a := range shown {
		n := drawn{Actor: a, Name: a.Path[strings.LastIndexByte(a.Path, '/')+1:], X: 12 + (depth+1)*indent, Above: above, Waiting: int(min(a.Pending, 100))}
		n.Y = len(d.Nodes)*rowHeight + 16
		d.Nodes = append(d.Nodes, n)
		d.place(children, a.Path, depth+1, n.Y)
	}
	if more > 0 {
		n := drawn{Actor: api.Actor{Path: parent}, More: more, X: 12 + (depth+1)*indent, Above: above}
		n.Y = len(d.Nodes)*rowHeight + 16
		d.Nodes = append(d.Nodes, n)
	}
}

// Left is the place of the parent's mark, from which a line leads here; 0 = there is none.
func (n drawn) Left() int { return max(0, n.X-indent) }

// Top is the upper edge of the bar.
func (n drawn) Top() int { return n.Y - 3 }
