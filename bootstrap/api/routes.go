package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// maxBody limits the body of a request.
const maxBody = 1 << 20

// get is a handler of GET and HEAD that answers with a value.
type get func(r *http.Request) (any, error)

// handler returns the handler of one listener; control is true for the control socket.
func (s *Server) handler(control bool) http.Handler {
	mux, all := http.NewServeMux(), http.NewServeMux()
	for path, resource := range s.resources(control) {
		if path == "/api/v1/trace" { // a trace has no end, and so no deadline
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

// resources are the resources of one listener by path. openapi.json describes them.
func (s *Server) resources(control bool) map[string]methods {
	changes := guard{s, control}
	all := map[string]methods{
		"/livez":                   {http.MethodGet: s.livez},
		"/readyz":                  {http.MethodGet: s.readyz},
		"/healthz":                 {http.MethodGet: s.healthz},
		"/openapi.json":            {http.MethodGet: describe},
		"/api/v1/trace":            {http.MethodGet: s.traces(control)},
		"/api/v1/resync":           {http.MethodGet: answer(s.resync), http.MethodPost: changes.only(s.startResync)},
		"/api/v1/actors/{path...}": {http.MethodGet: answer(s.actor(control)), http.MethodPost: changes.only(s.command)},
		"/api/v1/chaos": {
			http.MethodGet: answer(plain(s.backend.Chaos)), http.MethodPost: changes.only(s.inject), http.MethodDelete: changes.only(s.stopChaos),
		},
		"/api/v1/external/{source...}": {
			http.MethodGet: answer(s.external), http.MethodPut: changes.only(s.applyExternal), http.MethodDelete: changes.only(s.deleteExternal),
		},
		"/api/v1/pods/{namespace}/{name}/interface": {
			http.MethodPut: changes.only(s.attachPod), http.MethodDelete: changes.only(s.detachPod),
		},
	}
	if len(s.cfg.Reads) > 0 { // no agent: the connector
		delete(all, "/openapi.json")
	}
	for path, fn := range s.reads(control) {
		all["/api/v1/"+path] = methods{http.MethodGet: answer(fn)}
	}
	return all
}

// reads are the read-only resources of one listener.
func (s *Server) reads(control bool) map[string]get {
	return map[string]get{
		"status":                               plain(s.backend.Status),
		"services":                             s.services,
		"services/{namespace}/{name}":          s.service,
		"services/{namespace}/{name}/sessions": s.serviceSessions(control),
		"actors":                               s.actors,
		"dead-letters":                         plain(s.backend.DeadLetters),
		"events":                               s.events,
		"interfaces":                           s.interfaces,
		"nodes":                                s.nodes,
		"packet":                               s.packet,
		"sessions":                             plain(s.backend.Sessions),
		"external":                             s.external,
		"diff":                                 s.diff(control),
		"tree":                                 s.tree,
		"top":                                  s.top,
	}
}

// methods is a resource with a handler for each method. HEAD is GET without its body (net/http
// drops it); OPTIONS lists the methods.
type methods map[string]http.HandlerFunc

// ServeHTTP satisfies http.Handler.
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
