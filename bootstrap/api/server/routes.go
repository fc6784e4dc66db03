package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

// maxBody limits the body of a request.
const maxBody = 1 << 20

// get is a handler of GET and HEAD that answers with a value.
type get func(r *http.Request) (any, error)

// handler returns the handler of one listener; control is true for the control socket.
func (s *Server) handler(control bool) http.Handler {
	mux, all := http.NewServeMux(), http.NewServeMux()
	for path, resource := range s.resources(control) {
		if path == "/api/v1/trace" { // a trace may last for ever, so it has no deadline
			all.Handle(path, s.contained(resource))
		} else {
			mux.Handle(path, resource)
		}
	}
	if s.cfg.Metrics != nil {
		mux.Handle("/metrics", methods{http.MethodGet: s.cfg.Metrics.ServeHTTP})
	}
	if s.cfg.Page != nil {
		mux.Handle("/", methods{http.MethodGet: s.cfg.Page.ServeHTTP})
	}
	changes := guard{s, control}
	for path, fn := range s.cfg.Reads {
		mux.Handle("/api/v1/"+path, methods{http.MethodGet: answer(fn)})
	}
	for path, fn := range s.cfg.Changes {
		mux.Handle("/api/v1/"+path, methods{http.MethodPost: changes.only(answer(fn))})
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "no such resource: "+r.URL.Path)
	})
	all.Handle("/", s.guarded(mux))
	if control {
		profiles(all)
		return all
	}
	return s.hosts.only(s, all)
}

// resources are the resources of one listener by path.
func (s *Server) resources(control bool) map[string]methods {
	all := map[string]methods{
		"/livez":  {http.MethodGet: s.livez},
		"/readyz": {http.MethodGet: s.readyz},
		"/api/v1/actors/{path...}": {
			http.MethodGet: answer(s.actor(control)), http.MethodPost: guard{s, control}.only(s.command),
		},
	}
	if s.cfg.Health != nil {
		maps.Copy(all, map[string]methods{"/healthz": {http.MethodGet: s.cfg.Health.ServeHTTP}})
	}
	reads := map[string]get{
		"actors":       listed(s.process.Actors, sortNames(), filters{"kind": nil, "state": nil, "under": nil}, pageActors),
		"dead-letters": plain(s.process.DeadLetters),
		"tree":         s.tree,
		"top":          s.top,
	}
	if s.backend != nil {
		maps.Copy(all, s.resourcesOfAgent(control))
		maps.Copy(reads, s.readsOfAgent(control))
	}
	for path, fn := range reads {
		all["/api/v1/"+path] = methods{http.MethodGet: answer(fn)}
	}
	return all
}

// resourcesOfAgent are the further resources of an agent. openapi.json describes all of them.
func (s *Server) resourcesOfAgent(control bool) map[string]methods {
	changes := guard{s, control}
	return map[string]methods{
		"/openapi.json":     {http.MethodGet: describe},
		"/api/v1/trace":     {http.MethodGet: s.traces(control)},
		"/api/v1/resync":    {http.MethodGet: answer(plain(s.backend.Resync)), http.MethodPost: changes.only(s.startResync)},
		"/api/v1/addresses": {http.MethodGet: answer(paged(s.backend.Addresses, func(a *api.Address) string { return a.Address })), http.MethodPost: changes.only(s.changeAddresses)},
		"/api/v1/chaos": {
			http.MethodGet: answer(plain(s.backend.Chaos)), http.MethodPost: changes.only(s.inject), http.MethodDelete: changes.only(s.stopChaos),
		},
		"/api/v1/external/{source...}": {
			http.MethodGet: answer(s.external), http.MethodPut: changes.only(s.applyExternal), http.MethodDelete: changes.only(func(w http.ResponseWriter, r *http.Request) { s.changeExternal(w, r, nil, nil) }),
		},
		"/api/v1/pods/{namespace}/{name}/interface": {
			http.MethodPut: changes.only(s.attachPod), http.MethodDelete: changes.only(func(w http.ResponseWriter, r *http.Request) { s.podInterface(w, r, "", nil) }),
		},
	}
}

// readsOfAgent are the further resources of an agent that cannot be changed.
func (s *Server) readsOfAgent(control bool) map[string]get {
	shown := view{s.backend, s, control}
	services := filters{"served": api.Texts(api.ServedWords()), "state": api.Texts(api.ServiceStates()), "namespace": nil}
	return map[string]get{
		"status":                               plain(s.backend.Status),
		"services":                             listed(s.backend.Services, nil, services, pageServices),
		"services/{namespace}/{name}":          keyed(shown.Service),
		"services/{namespace}/{name}/sessions": keyed(shown.ServiceSessions),
		"events":                               s.events,
		"interfaces":                           paged(s.backend.Interfaces, func(i *api.Interface) string { return fmt.Sprintf("%010d", i.Index) }),
		"nodes":                                paged(s.backend.Nodes, func(n *api.Node) string { return n.Name }),
		"packet":                               s.packet,
		"sessions":                             plain(s.backend.Sessions),
		"external":                             s.external,
		"diff":                                 plain(shown.Diff),
	}
}

// methods is a resource with a handler for each method. HEAD is GET without its body (net/http
// drops it); OPTIONS lists the methods.
type methods map[string]http.HandlerFunc

func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	if fn := m[method]; fn != nil {
		fn(w, r)
		return
	}
	allowed := []string{http.MethodOptions}
	for name := range m {
		allowed = append(allowed, name)
		if name == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	if r.Method == http.MethodOptions {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	fail(w, http.StatusMethodNotAllowed, "method "+r.Method+" is not allowed: expected "+strings.Join(allowed, ", "))
}

// answer makes a handler of a function.
func answer(fn get) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		value, err := fn(r)
		respond(w, value, err)
	}
}

// decodeBody decodes a JSON body strictly; an empty body keeps the value.
func decodeBody(r *http.Request, into any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	switch err := d.Decode(into); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("%w: body: %w", errQuery, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: body: more than one value", errQuery)
	}
	return nil
}

// profiles adds /debug/pprof/ to the control socket. Goroutines have the label "actor" with the
// path of the actor they work for. The client chooses the duration of a profile, so these resources
// have no deadline.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
}
