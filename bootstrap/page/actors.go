package page

import (
	"cmp"
	"encoding/json"
	"net/http"
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
