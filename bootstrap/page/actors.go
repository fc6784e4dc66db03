package page

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// trouble ranks the states of actors, the worst lowest; an unknown state is the worst.
func trouble(state string) int {
	return slices.Index([]string{"quarantined", "backoff", "suspended", "stopping", "held", "starting", "running", "idle"}, state)
}

// worstFirst orders actors by their states, failures and pending messages, because an operator
// looks for the cause of a problem among thousands of idle actors.
func worstFirst(a, b *api.Actor) int {
	return cmp.Or(
		cmp.Compare(trouble(a.State), trouble(b.State)), cmp.Compare(b.Failures, a.Failures), cmp.Compare(b.Pending, a.Pending), strings.Compare(a.Path, b.Path),
	)
}

// actors is the list of actors, the worst first, with filters.
func (h *handler) actors(r *http.Request) (any, error) {
	query, err := parameters(r, "kind", "state", "under", "namespace", "page")
	if err != nil {
		return nil, err
	}
	all, err := h.Source.Actors(r.Context())
	if err != nil {
		return nil, err
	}
	kind, state, under, namespace := query.Get("kind"), query.Get("state"), query.Get("under"), query.Get("namespace")
	all = slices.DeleteFunc(slices.Clone(all), func(a api.Actor) bool {
		return kind != "" && a.Kind != kind || state != "" && a.State != state || under != "" && !strings.HasPrefix(a.Path, under+"/") ||
			namespace != "" && namespaceOf(a.Path) != namespace
	})
	slices.SortFunc(all, func(a, b api.Actor) int { return worstFirst(&a, &b) })
	list, err := paged(r, all, "kind", "state", "under", "namespace")
	if err != nil {
		return nil, err
	}
	letters, err := h.Source.DeadLetters(r.Context())
	return allActors{list, letters}, err
}

// allActors is the data of the list.
type allActors struct {
	*list[api.Actor]
	DeadLetters *api.DeadLetters
}

// namespaceOf is the namespace of the service of an actor; "" = the actor belongs to no service.
func namespaceOf(path string) string {
	namespace, _, found := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], "~")
	if !found {
		return ""
	}
	return namespace
}

// oneActor is the data of the view of an actor.
type oneActor struct {
	api.Actor
	Mailbox  *api.Mailbox
	State    json.RawMessage
	Unstated string // why State is missing
	Failures []api.Failure
	Events   []api.Event
	Traffic  *api.Traffic
}

// actor is one actor. Only its state needs an answer of the actor, so a blocked actor shows
// everything else.
func (h *handler) actor(r *http.Request) (any, error) {
	ctx, path := r.Context(), r.PathValue("path")
	found, err := h.Source.Actor(ctx, path)
	if err != nil {
		return nil, err
	}
	data := oneActor{Actor: *found}
	if data.Traffic, err = h.Source.Traffic(ctx, path); err != nil {
		return nil, err
	}
	if data.State, err = h.Source.State(ctx, path); err != nil {
		data.Unstated = err.Error()
	}
	if data.Mailbox, err = h.Source.Mailbox(ctx, path); err != nil {
		return nil, err
	}
	if data.Failures, err = h.Source.Failures(ctx, path); err != nil {
		return nil, err
	}
	events, err := h.Source.Events(ctx, api.EventQuery{Limit: api.MaxLimit})
	if err != nil {
		return nil, err
	}
	data.Events = slices.DeleteFunc(events.Items, func(e api.Event) bool { return e.Actor != path })
	return data, nil
}

// Places of the drawing, in its units.
const (
	rowHeight = 24
	indent    = 22
	// mostDrawn is the number of children of one actor that are drawn, the worst ones: 10,000
	// services would hide everything else. The other children are counted, by namespace for the
	// mostGroups largest namespaces.
	mostDrawn  = 25
	mostGroups = 10
)

// drawing is the supervision tree as lines of a picture, from top to bottom.
type drawing struct {
	Nodes  []drawn
	Height int
	Total  int
	// Under is the actor at the top of the drawing; "" = the roots are.
	Under string

	children map[string][]*api.Actor
	closed   []string // paths of actors without their children
}

// drawn is one actor in its place, or the number of omitted actors.
type drawn struct {
	api.Actor
	Name string
	// More counts siblings that are not drawn, of one namespace or of all other namespaces.
	// Such an entry is not an actor, and its Path is the path of the parent.
	More      int
	Namespace string
	// Below counts the children, which Closed hides. Toggle is the address of the drawing with
	// Closed reversed.
	Below  int
	Closed bool
	Toggle string
	// X and Y are the place of its mark. Above is the place of the parent's mark, from which a
	// line leads here.
	X, Y, Above int
	// Waiting is the length of the bar of its mailbox.
	Waiting int
}

// tree draws the live supervision tree below the actor ?under=, without the actors below ?closed=.
func (h *handler) tree(r *http.Request) (any, error) {
	query, err := parameters(r, "under", "closed")
	if err != nil {
		return nil, err
	}
	all, err := h.Source.Actors(r.Context())
	if err != nil {
		return nil, err
	}
	return draw(all, query.Get("under"), strings.FieldsFunc(query.Get("closed"), func(r rune) bool { return r == ',' })), nil
}

// draw places actors. They are ordered by path, so a parent comes before its children. Children of
// one parent keep their order, except that the worst come first if there are many.
func draw(all []api.Actor, under string, closed []string) *drawing {
	d := &drawing{Total: len(all), Under: under, children: map[string][]*api.Actor{}, closed: closed}
	known := make(map[string]bool, len(all))
	for i := range all {
		known[all[i].Path] = true
	}
	for i := range all {
		a := &all[i]
		parent := a.Path[:max(0, strings.LastIndexByte(a.Path, '/'))]
		if !known[parent] {
			parent = ""
		}
		d.children[parent] = append(d.children[parent], a)
	}
	d.place(under, -1, 0)
	d.Height = len(d.Nodes)*rowHeight + 8
	return d
}

// place draws the children of one actor, and theirs.
func (d *drawing) place(parent string, depth, above int) {
	shown := d.children[parent]
	var hidden []*api.Actor
	if len(shown) > mostDrawn {
		shown = slices.SortedFunc(slices.Values(shown), worstFirst)
		shown, hidden = shown[:mostDrawn], shown[mostDrawn:]
	}
	for _, a := range shown {
		n := drawn{
			Actor: *a, Name: a.Path[strings.LastIndexByte(a.Path, '/')+1:], Above: above, Waiting: int(min(a.Pending, 100)),
			Below: len(d.children[a.Path]), Closed: slices.Contains(d.closed, a.Path), Toggle: d.toggle(a.Path),
		}
		at := d.add(n, depth)
		if !n.Closed {
			d.place(a.Path, depth+1, at)
		}
	}
	for _, n := range groups(hidden) {
		n.Path, n.Above = parent, above
		d.add(n, depth)
	}
}

// add draws a line and returns its place from above.
func (d *drawing) add(n drawn, depth int) int {
	n.X, n.Y = 12+(depth+1)*indent, len(d.Nodes)*rowHeight+16
	d.Nodes = append(d.Nodes, n)
	return n.Y
}

// groups counts actors by namespace, the largest first. Actors without a namespace, or with a small
// one, are one group at the end.
func groups(actors []*api.Actor) (out []drawn) {
	count, rest := map[string]int{}, len(actors)
	for _, a := range actors {
		if namespace := namespaceOf(a.Path); namespace != "" {
			count[namespace]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b)) })
	for _, name := range names[:min(len(names), mostGroups)] {
		out = append(out, drawn{More: count[name], Namespace: name})
		rest -= count[name]
	}
	if rest > 0 {
		out = append(out, drawn{More: rest})
	}
	return out
}

// toggle is the address of the same drawing with an actor closed, or open if it is closed.
func (d *drawing) toggle(path string) string {
	closed := slices.DeleteFunc(slices.Clone(d.closed), func(other string) bool { return other == path })
	if len(closed) == len(d.closed) {
		closed = append(closed, path)
	}
	query := url.Values{}
	for name, value := range map[string]string{"under": d.Under, "closed": strings.Join(closed, ",")} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return "/tree?" + query.Encode()
}

// Left is the place of the parent's mark, from which a line leads here; 0 = there is none.
func (n drawn) Left() int { return max(0, n.X-indent) }

// Top is the upper edge of the bar.
func (n drawn) Top() int { return n.Y - 3 }
