package page

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/actors/address"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// services is the list of services, the worst first, with filters.
func (h *handler) services(r *http.Request) (any, error) {
	query, err := parameters(r, "name", "served", "state", "namespace", "page")
	if err != nil {
		return nil, err
	}
	all, err := h.Source.Services(r.Context())
	if err != nil {
		return nil, err
	}
	name, served, state, namespace := query.Get("name"), query.Get("served"), query.Get("state"), query.Get("namespace")
	all = slices.DeleteFunc(slices.Clone(all), func(s api.Service) bool {
		return served != "" && string(s.Served) != served || state != "" && string(s.State) != state || namespace != "" && !strings.HasPrefix(s.Key, namespace+"/") ||
			!strings.Contains(s.Key, name)
	})
	sortServices(all)
	shared := aggregate(all)
	resync, err := h.Source.Resync(r.Context())
	if err != nil {
		return nil, err
	}
	part, err := paged(r, all, "name", "served", "state", "namespace")
	return struct {
		*list[api.Service]
		Shared []repeated
		Read   time.Time
	}{part, shared, resync.LastRead()}, err
}

// sortServices orders services, the worst first.
func sortServices(all []api.Service) {
	words, states := api.ServedWords(), api.ServiceStates()
	slices.SortFunc(all, func(a, b api.Service) int {
		return cmp.Or(
			cmp.Compare(slices.Index(states, a.State), slices.Index(states, b.State)),
			cmp.Compare(slices.Index(words, a.Served), slices.Index(words, b.Served)), strings.Compare(a.Key, b.Key))
	})
}

// oneService is the data of the view of a service.
type oneService struct {
	*api.ServiceDetail
	// Causes are the sentences at the top.
	Causes []cause
	// Lanes are the map: clients, frontends, endpoints.
	Lanes []lane
	// Actor is the path of its actor.
	Actor string
	// Change is the effect of its last change, hop by hop.
	Change *waterfall
	Events []api.Event
	// Uses are the first endpoints, MoreUses counts the others, because a service may have
	// thousands.
	Uses     []api.EndpointUse
	MoreUses int
	// Sessions are read with ?sessions=yes. NoSessions is the reason if they cannot be read.
	Sessions   *api.ServiceSessions
	NoSessions error
}

// service is one service.
func (h *handler) service(r *http.Request) (any, error) {
	ctx, key := r.Context(), r.PathValue("namespace")+"/"+r.PathValue("name")
	query, err := parameters(r, "sessions")
	if err != nil {
		return nil, err
	}
	detail, err := h.Source.Service(ctx, key)
	if err != nil {
		return nil, err
	}
	data := oneService{ServiceDetail: detail, Actor: address.Service(key)}
	if query.Has("sessions") {
		data.Sessions, data.NoSessions = h.Source.ServiceSessions(ctx, key)
	}
	data.Uses = detail.Uses[:min(len(detail.Uses), perPage)]
	data.MoreUses = len(detail.Uses) - len(data.Uses)
	data.Lanes = h.lanes(ctx, &data)
	data.Causes = data.causes(h.Node)
	events, err := h.Source.Events(ctx, api.EventQuery{Object: key, Limit: 50})
	if err != nil {
		return nil, err
	}
	data.Events = events.Items
	for _, e := range events.Items {
		if e.Cause == 0 {
			continue
		}
		chain, err := h.Source.Events(ctx, api.EventQuery{Cause: e.Cause, Limit: 100})
		if err != nil {
			return nil, err
		}
		data.Change = fall(chain.Items)
		break
	}
	return data, nil
}

// waterfall shows where the time of one change went: its events, the earliest first.
type waterfall struct {
	Cause uint64
	Took  time.Duration
	Hops  []hop
}

// hop is one event of a waterfall: Took is the time since the previous event. Start and Width place
// its bar, in thousandths of the whole.
type hop struct {
	api.Event
	Took         time.Duration
	Start, Width int64
}

// fall makes the waterfall of events, of which the newest is first.
func fall(events []api.Event) *waterfall {
	if len(events) == 0 {
		return nil
	}
	events = slices.Clone(events)
	slices.Reverse(events)
	first, last := events[0].Time, events[len(events)-1].Time
	w := &waterfall{Cause: events[0].Cause, Took: last.Sub(first).Round(time.Microsecond)}
	before := first
	whole := max(w.Took, 1)
	for _, e := range events {
		w.Hops = append(w.Hops, hop{
			Event: e, Took: e.Time.Sub(before).Round(time.Microsecond), Start: int64(1000 * before.Sub(first) / whole), Width: max(4, int64(1000*e.Time.Sub(before)/whole)),
		})
		before = e.Time
	}
	return w
}
