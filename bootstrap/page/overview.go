package page

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// summary is the data of the overview.
type summary struct {
	Status   *api.NodeStatus
	Curves   []curve
	Sentence sentence
	// Interfaces is the picture of the node; nil = it is not known.
	Interfaces *api.Interfaces
	Sessions   *api.Sessions
	Parts      []api.Part
	Total      int
	Resync     *api.Resync
	// Worst are actors in a bad state and actors that have failed, at most 10.
	Worst  []api.Actor
	Actors int
	Events []api.Event
}

// overview is the first document.
func (h *handler) overview(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	ctx := r.Context()
	services, err := h.Source.Services(ctx)
	if err != nil {
		return nil, err
	}
	data := summary{Total: len(services), Parts: sameReason(h.Source.Readiness().Parts), Curves: h.History.curves(time.Now())}
	if data.Status, err = h.Source.Status(ctx); err != nil {
		return nil, err
	}
	services = slices.Clone(services)
	sortServices(services)
	data.Sentence = say(data.Status, services)
	if data.Interfaces, err = h.Source.Interfaces(ctx); err != nil {
		data.Interfaces = nil
	}
	if data.Sessions, err = h.Source.Sessions(ctx); err != nil {
		data.Sessions = nil // without NAT44 there are none
	}
	if data.Resync, err = h.Source.Resync(ctx); err != nil {
		return nil, err
	}
	actors, err := h.Source.Actors(ctx)
	if err != nil {
		return nil, err
	}
	data.Actors = len(actors)
	data.Worst = slices.DeleteFunc(slices.Clone(actors), func(a api.Actor) bool { return a.Failures == 0 && trouble(a.State) >= trouble("running") })
	slices.SortFunc(data.Worst, func(a, b api.Actor) int { return worstFirst(&a, &b) })
	data.Worst = data.Worst[:min(len(data.Worst), 10)]
	events, err := h.Source.Events(ctx, api.EventQuery{Limit: 50})
	if err != nil {
		return nil, err
	}
	data.Events = joined(events.Items)
	data.Events = data.Events[:min(len(data.Events), 12)]
	return data, nil
}

// sameReason joins parts that fail for the same reason into one.
func sameReason(parts []api.Part) (out []api.Part) {
	for _, p := range parts {
		i := slices.IndexFunc(out, func(o api.Part) bool { return !p.OK && !o.OK && o.Reason == p.Reason })
		if i < 0 {
			out = append(out, p)
			continue
		}
		out[i].Name += ", " + p.Name
	}
	return out
}

// events is the journal, with filters.
func (h *handler) events(r *http.Request) (any, error) {
	query, err := parameters(r, "kind", "object", "cause", "before")
	if err != nil {
		return nil, err
	}
	ask := api.EventQuery{Kind: query.Get("kind"), Object: query.Get("object"), Limit: perPage}
	for name, number := range map[string]*uint64{"cause": &ask.Cause, "before": &ask.Before} {
		if text := query.Get(name); text != "" {
			if *number, err = strconv.ParseUint(text, 10, 64); err != nil {
				return nil, badNumber(name, text)
			}
		}
	}
	page, err := h.Source.Events(r.Context(), ask)
	if err != nil {
		return nil, err
	}
	data := list[api.Event]{Items: page.Items, Query: query}
	if page.Next != 0 {
		query.Set("before", strconv.FormatUint(page.Next, 10))
		data.After = "?" + query.Encode()
		query.Del("before")
	}
	return &data, nil
}

// timeline is the data of the view of resyncs: the repairs, the latest first.
type timeline struct {
	*api.Resync
	Events []api.Event
}

// resync is the progress of the renderers, and the repairs.
func (h *handler) resync(r *http.Request) (any, error) {
	if _, err := parameters(r); err != nil {
		return nil, err
	}
	found, err := h.Source.Resync(r.Context())
	if err != nil {
		return nil, err
	}
	data := timeline{Resync: found}
	for _, kind := range []string{"resync", "healing", "link", "readiness"} {
		page, err := h.Source.Events(r.Context(), api.EventQuery{Kind: kind, Limit: 50})
		if err != nil {
			return nil, err
		}
		data.Events = append(data.Events, page.Items...)
	}
	slices.SortFunc(data.Events, func(a, b api.Event) int { return b.Time.Compare(a.Time) })
	data.Events = joined(data.Events)
	return data, nil
}
