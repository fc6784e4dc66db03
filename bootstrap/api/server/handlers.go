package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// plain is a resource without parameters.
func plain[T any](ask func(context.Context) (T, error)) get {
	return func(r *http.Request) (any, error) {
		if _, err := parameters(r.URL.RawQuery); err != nil {
			return nil, err
		}
		return ask(r.Context())
	}
}

// listed is a list of actors or services with these orders and filters.
func listed[T any](ask func(context.Context) ([]T, error), orders []string, by filters, cut func([]T, *listQuery) api.Page[T]) get {
	return func(r *http.Request) (any, error) {
		q, err := parseList(r.URL.RawQuery, orders, by)
		if err != nil {
			return nil, err
		}
		all, err := ask(r.Context())
		if err != nil {
			return nil, err
		}
		return cut(all, q), nil
	}
}

// paged is a resource with a list, which it has in pages in the order of these keys, and further
// fields.
func paged[T, I any, P api.Paged[T, I]](ask func(context.Context) (*T, error), key func(*I) string) get {
	return func(r *http.Request) (any, error) {
		q, err := parseWhole(r.URL.RawQuery)
		if err != nil {
			return nil, err
		}
		all, err := ask(r.Context())
		if err != nil {
			return nil, err
		}
		out := *all
		list := P(&out).List()
		*list = page(list.Items, q, func(i *I) cursor { return cursor{Key: key(i)} })
		return &out, nil
	}
}

// keyed is a resource of a service.
func keyed[T any](ask func(ctx context.Context, key string) (T, error)) get {
	return func(r *http.Request) (any, error) {
		return plain(func(ctx context.Context) (T, error) {
			return ask(ctx, r.PathValue("namespace")+"/"+r.PathValue("name"))
		})(r)
	}
}

// packet explains what happens to ?source= and ?destination=.
func (s *Server) packet(r *http.Request) (any, error) {
	values, err := parameters(r.URL.RawQuery, "source", "destination")
	if err != nil {
		return nil, err
	}
	return s.backend.Packet(r.Context(), values["source"], values["destination"])
}

// actor answers one actor, or its mailbox, state, failures or traffic.
func (s *Server) actor(control bool) get {
	reader := api.Inspector(s.process)
	if s.backend != nil {
		reader = view{s.backend, s, control}
	}
	return func(r *http.Request) (any, error) {
		path, what, err := splitActor(r.PathValue("path"))
		if err != nil {
			return nil, err
		}
		ctx := r.Context()
		switch what {
		case "":
			return reader.Actor(ctx, path)
		case "mailbox":
			return reader.Mailbox(ctx, path)
		case "state":
			return reader.State(ctx, path)
		case "traffic":
			return reader.Traffic(ctx, path)
		case "failures":
			failures, err := reader.Failures(ctx, path)
			return api.Page[api.Failure]{Items: orEmpty(failures), Total: len(failures)}, err
		default:
			return nil, fmt.Errorf("%w: %s changes state: use POST", errQuery, what)
		}
	}
}

// tree answers the actors as trees, one for each root.
func (s *Server) tree(r *http.Request) (any, error) {
	if _, err := parameters(r.URL.RawQuery); err != nil {
		return nil, err
	}
	all, err := s.process.Actors(r.Context())
	if err != nil {
		return nil, err
	}
	roots := tree(all)
	return api.Page[*api.TreeNode]{Items: orEmpty(roots), Total: len(all)}, nil
}

// top answers the busiest actors, in the order of ?by=, by default by the number of pending
// messages; with ?window= by their work in that time.
func (s *Server) top(r *http.Request) (any, error) {
	values, err := parameters(r.URL.RawQuery, "by", "limit", "window")
	if err != nil {
		return nil, err
	}
	q := &listQuery{sort: values["by"], limit: 10}
	if q.sort == "" {
		q.sort = "pending"
	}
	if actorOrders[q.sort] == nil {
		return nil, fmt.Errorf("%w: by %q is not one of pending, received, restarts, failures, busy", errQuery, q.sort)
	}
	if _, given := values["limit"]; given {
		if q.limit, err = limitOf(values); err != nil {
			return nil, err
		}
	}
	window, err := windowOf(values)
	if err != nil {
		return nil, err
	}
	all, err := s.actorsOver(r.Context(), window)
	if err != nil {
		return nil, err
	}
	top := pageActors(all, q)
	top.Next = "" // the order changes all the time, so the next page would repeat or miss actors
	return top, nil
}

// longestWindow is shorter than the deadline of a request.
const longestWindow = 5 * time.Second

// windowOf reads the time over which actors are observed; 0 = since their start.
func windowOf(values map[string]string) (time.Duration, error) {
	text, given := values["window"]
	if !given {
		return 0, nil
	}
	window, err := time.ParseDuration(text)
	if err != nil || window <= 0 || window > longestWindow {
		return 0, fmt.Errorf("%w: window %q is not a duration up to %s", errQuery, text, longestWindow)
	}
	return window, nil
}

// actorsOver returns the actors with the numbers of their work within a window from now; 0 = since
// their start.
func (s *Server) actorsOver(ctx context.Context, window time.Duration) ([]api.Actor, error) {
	before, err := s.process.Actors(ctx)
	if err != nil || window == 0 {
		return before, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ending.Done():
		return nil, fmt.Errorf("%w: the agent is stopping", api.ErrUnavailable)
	case <-time.After(window):
	}
	after, err := s.process.Actors(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[string]*api.Actor, len(before))
	for i := range before {
		known[before[i].Path] = &before[i]
	}
	out := slices.Clone(after)
	for i := range out {
		if b, a := known[out[i].Path], &out[i]; b != nil && b.Received <= a.Received {
			// otherwise another actor has its name now
			a.Received, a.Coalesced, a.Restarts, a.Failures = a.Received-b.Received, a.Coalesced-b.Coalesced, a.Restarts-b.Restarts, a.Failures-b.Failures
			a.BusySeconds -= b.BusySeconds
		}
	}
	return out, nil
}

func (s *Server) events(r *http.Request) (any, error) {
	q, err := parseEvents(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	return s.backend.Events(r.Context(), q)
}

// startResync answers 202 at once; GET returns the progress.
func (s *Server) startResync(w http.ResponseWriter, r *http.Request) {
	var request api.ResyncRequest
	err := decodeBody(r, &request)
	if err == nil {
		if request.Reason == "" {
			request.Reason = "asked for through the control socket"
		}
		switch request.Method = cmp.Or(request.Method, api.ResyncFull); request.Method {
		case api.ResyncFull, api.ResyncUpstream, api.ResyncDownstream:
			err = s.backend.StartResync(r.Context(), request)
		default:
			err = fmt.Errorf("%w: method %q is not one of full, upstream, downstream", errQuery, request.Method)
		}
	}
	accepted(w, struct{}{}, err)
}

// changeAddresses answers POST /api/v1/addresses.
func (s *Server) changeAddresses(w http.ResponseWriter, r *http.Request) {
	var request api.AddressesRequest
	err := decodeBody(r, &request)
	if err == nil {
		err = s.backend.ChangeAddresses(r.Context(), request)
	}
	accepted(w, struct{}{}, err)
}

// command answers POST /api/v1/actors/{path}:verb.
func (s *Server) command(w http.ResponseWriter, r *http.Request) {
	path, what, err := splitActor(r.PathValue("path"))
	verbs := []api.Verb{api.VerbRestart, api.VerbKill, api.VerbSuspend, api.VerbResume}
	switch {
	case err != nil:
	case what == "" || what[0] != ':' || !slices.Contains(verbs, api.Verb(what[1:])):
		err = fmt.Errorf("%w: expected actors/PATH:restart, :kill, :suspend or :resume", errQuery)
	default:
		err = s.process.Command(r.Context(), path, api.Verb(what[1:]))
	}
	accepted(w, struct{}{}, err)
}

// attachPod answers when VPP has the roles of the interface.
func (s *Server) attachPod(w http.ResponseWriter, r *http.Request) {
	var request api.PodInterfaceRequest
	err := decodeBody(r, &request)
	switch {
	case err != nil:
	case request.Interface == "" || len(request.Interface) > maxName || strings.ContainsFunc(request.Interface, unprintable):
		err = fmt.Errorf("%w: interface: expected the name of an interface in VPP", errQuery)
	}
	s.podInterface(w, r, request.Interface, err)
}

// maxName is the longest name of an interface in VPP, and of a namespace or pod.
const maxName = 253

// unprintable reports whether a character is not allowed in a name.
func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// podInterface answers when VPP has the roles with an interface of the pod; "" = without one.
func (s *Server) podInterface(w http.ResponseWriter, r *http.Request, name string, err error) {
	namespace, pod := r.PathValue("namespace"), r.PathValue("name")
	for _, part := range []string{namespace, pod} {
		if err == nil && (len(part) > maxName || strings.ContainsFunc(part, unprintable) || strings.Contains(part, "/")) {
			err = fmt.Errorf("%w: pod: expected pods/NAMESPACE/NAME/interface", errQuery)
		}
	}
	if err != nil {
		respond(w, nil, err)
		return
	}
	value, err := s.backend.AttachPod(r.Context(), namespace+"/"+pod, name)
	respond(w, value, err)
}

// orEmpty returns a list that is never nil, because JSON would have null instead of an array.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// inject answers 202 with the record of the fault or the status of the drill, because the outcome
// is open; GET returns it later.
func (s *Server) inject(w http.ResponseWriter, r *http.Request) {
	var request api.ChaosRequest
	var value any
	err := decodeBody(r, &request)
	switch {
	case err != nil:
	case request.Plan == nil:
		value, err = s.backend.Inject(r.Context(), PeerOf(r.Context()), request.Fault)
	case request.Fault != live.Fault{}:
		err = fmt.Errorf("%w: body: expected a fault or a plan, not both", errQuery)
	default:
		value, err = s.backend.StartDrill(r.Context(), PeerOf(r.Context()), *request.Plan)
	}
	accepted(w, value, err)
}

// stopChaos ends all faults and the drill.
func (s *Server) stopChaos(w http.ResponseWriter, r *http.Request) {
	stopped, err := s.backend.StopChaos(r.Context(), PeerOf(r.Context()))
	respond(w, api.ChaosStopped{Stopped: stopped}, err)
}

// ownSource matches the names of layers at the control socket; "file" is reserved for the file,
// "snat" for dynamic SNAT.
var ownSource = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// external answers with the layer of a source, or with all layers if the path names no source, and
// a page of their entries. An unknown source is an empty layer.
func (s *Server) external(r *http.Request) (any, error) {
	q, err := parseWhole(r.URL.RawQuery)
	if err != nil {
		return nil, err
	}
	all, err := s.backend.External(r.Context())
	if err != nil {
		return nil, err
	}
	source := r.PathValue("source")
	other := func(of string) bool { return source != "" && of != source }
	entries := slices.DeleteFunc(slices.Clone(all.Items), func(e api.ExternalEntry) bool { return other(e.Source) })
	place := map[*api.ExternalEntry]string{} // entries keep their own order
	for i := range entries {
		place[&entries[i]] = fmt.Sprintf("%09d", i)
	}
	p := page(entries, q, func(e *api.ExternalEntry) cursor { return cursor{Key: place[e]} })
	layers := slices.DeleteFunc(append([]api.ExternalLayer{}, all.Layers...), func(l api.ExternalLayer) bool { return other(l.Source) })
	return &api.External{Complete: all.Complete, Layers: layers, Page: p}, nil
}

// applyExternal answers when VPP has the configuration of the document in the body, YAML or JSON.
func (s *Server) applyExternal(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		if body, err = yaml.YAMLToJSONStrict(body); err != nil {
			err = fmt.Errorf("%w: body: %w", errQuery, err)
		} else if string(body) == "null" {
			err = fmt.Errorf("%w: body: expected a document of kind ExternalConfiguration", errQuery)
		}
	}
	s.changeExternal(w, r, body, err)
}

// changeExternal answers when VPP has the configuration with this document of the layer; nil =
// without the layer.
func (s *Server) changeExternal(w http.ResponseWriter, r *http.Request, document []byte, err error) {
	source := r.PathValue("source")
	if err == nil && (source == "file" || source == "snat" || !ownSource.MatchString(source)) {
		err = fmt.Errorf("%w: source %q: expected a name of letters, digits and dashes other than file and snat", errQuery, source)
	}
	if err != nil {
		respond(w, nil, err)
		return
	}
	value, err := s.backend.ApplyExternal(r.Context(), source, document)
	respond(w, value, err)
}
