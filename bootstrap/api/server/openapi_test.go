package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/troupe-vpp/troupe/actors/chaos/live"
	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/api/server"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// operation is one method of one path in the description.
type operation struct {
	method, path, what string
	// query are the parameters besides the parameters of the path.
	query []string
	// body is the type of the request, answer the type of the answer, code its status; text
	// means an answer that is not JSON.
	body, answer any
	code         int
	text         string
}

// operations are all of them. A parameter {path} or {source} may hold slashes.
func operations() []operation {
	list := []string{"limit", "cursor"}
	return []operation{
		{method: "GET", path: "/livez", what: "Whether the process must be restarted", text: "text/plain"},
		{method: "GET", path: "/readyz", what: "Whether VPP is in the desired state", query: []string{"verbose"}, text: "text/plain"},
		{method: "GET", path: "/healthz", what: "Whether load balancers may use this node, as kube-proxy answers", answer: healthcheck.ProxyHealth{}},
		{method: "GET", path: "/openapi.json", what: "This document", answer: map[string]any{}},
		{method: "GET", path: "/api/v1/status", what: "The node in one line", answer: api.NodeStatus{}},
		{method: "GET", path: "/api/v1/services", what: "Services", query: append(list, "served", "state", "namespace"), answer: api.Page[api.Service]{}},
		{method: "GET", path: "/api/v1/services/{namespace}/{name}", what: "One service with its frontends and rows", answer: api.ServiceDetail{}},
		{method: "GET", path: "/api/v1/interfaces", what: "Interfaces of VPP", query: list, answer: api.Interfaces{}},
		{method: "GET", path: "/api/v1/addresses", what: "Load-balancer addresses of pools", query: list, answer: api.Addresses{}},
		{method: "POST", path: "/api/v1/addresses", what: "Give up all addresses, or take part in elections again", body: api.AddressesRequest{}, answer: struct{}{}, code: 202},
		{method: "GET", path: "/api/v1/sessions", what: "NAT sessions of VPP", answer: api.Sessions{}},
		{method: "GET", path: "/api/v1/packet", what: "What happens to the first packet of a connection", query: []string{"source", "destination"}, answer: api.Packet{}},
		{method: "GET", path: "/api/v1/nodes", what: "Nodes of the cluster", query: list, answer: api.Nodes{}},
		{method: "GET", path: "/api/v1/services/{namespace}/{name}/sessions", what: "NAT sessions of a service, read from VPP", answer: api.ServiceSessions{}},
		{method: "GET", path: "/api/v1/actors", what: "Actors", query: append(list, "sort", "kind", "state", "under"), answer: api.Page[api.Actor]{}},
		{method: "GET", path: "/api/v1/actors/{path}", what: "One actor", answer: api.Actor{}},
		{method: "GET", path: "/api/v1/actors/{path}/mailbox", what: "Messages that wait for an actor", answer: api.Mailbox{}},
		{method: "GET", path: "/api/v1/actors/{path}/state", what: "State of an actor", answer: json.RawMessage{}},
		{method: "GET", path: "/api/v1/actors/{path}/traffic", what: "What the actors of its kind have handled and sent", answer: api.Traffic{}},
		{method: "GET", path: "/api/v1/dead-letters", what: "Messages that were not delivered", answer: api.DeadLetters{}},
		{method: "GET", path: "/api/v1/actors/{path}/failures", what: "Latest failures of an actor", answer: api.Page[api.Failure]{}},
		{method: "POST", path: "/api/v1/actors/{path}:{verb}", what: "Restart, kill, suspend or resume an actor", answer: struct{}{}, code: 202},
		{method: "GET", path: "/api/v1/tree", what: "Actors as trees", answer: api.Page[*api.TreeNode]{}},
		{method: "GET", path: "/api/v1/top", what: "Busiest actors", query: []string{"by", "limit", "window"}, answer: api.Page[api.Actor]{}},
		{method: "GET", path: "/api/v1/events", what: "Events of the journal, the newest first", query: []string{"limit", "before", "after", "cause", "kind", "object"}, answer: api.EventPage{}},
		{method: "GET", path: "/api/v1/trace", what: "Events of the journal as server-sent events, each an Event", query: []string{"kind", "object", "cause", "after", "limit", "follow"}, text: "text/event-stream"},
		{method: "GET", path: "/api/v1/resync", what: "Progress of the renderers, and repairs", answer: api.Resync{}},
		{method: "POST", path: "/api/v1/resync", what: "Read and repair everything", body: api.ResyncRequest{}, answer: struct{}{}, code: 202},
		{method: "GET", path: "/api/v1/diff", what: "Read VPP and compare it with the desired state", answer: api.Diff{}},
		{method: "GET", path: "/api/v1/external", what: "External configuration", query: list, answer: api.External{}},
		{method: "GET", path: "/api/v1/external/{source}", what: "One layer of external configuration", query: list, answer: api.External{}},
		{method: "PUT", path: "/api/v1/external/{source}", what: "Replace a layer by a document of kind ExternalConfiguration", body: map[string]any{}, answer: api.ExternalResult{}},
		{method: "DELETE", path: "/api/v1/external/{source}", what: "Remove a layer", answer: api.ExternalResult{}},
		{method: "GET", path: "/api/v1/chaos", what: "Faults with their outcomes", answer: live.Status{}},
		{method: "POST", path: "/api/v1/chaos", what: "Begin a fault, or a drill: the answer is a Record or a RunStatus", body: api.ChaosRequest{}, answer: json.RawMessage{}, code: 202},
		{method: "DELETE", path: "/api/v1/chaos", what: "End all faults and the drill", answer: api.ChaosStopped{}},
		{method: "PUT", path: "/api/v1/pods/{namespace}/{name}/interface", what: "Assign an interface of VPP to a pod", body: api.PodInterfaceRequest{}, answer: api.PodInterface{}},
		{method: "DELETE", path: "/api/v1/pods/{namespace}/{name}/interface", what: "Remove the interface of a pod", answer: api.PodInterface{}},
	}
}

// TestOpenAPIIsCurrent: types, comments and the table of operations make exactly this document;
// -update writes it.
func TestOpenAPIIsCurrent(t *testing.T) {
	want, err := json.MarshalIndent(document(t), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("../openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(api.OpenAPI())); diff != "" {
		t.Errorf("openapi.json, run with -update (-want +got):\n%s", diff)
	}
}

// TestOpenAPIHasEveryRoute: every served route is described, and every described route is served.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	routes := server.New(apitest.New(0), server.Config{Health: http.NotFoundHandler()}, slog.New(slog.DiscardHandler)).Routes()
	served := map[string]bool{}
	for path, methods := range routes {
		for _, method := range methods {
			served[method+" "+strings.ReplaceAll(path, "...}", "}")] = true
		}
	}
	told := map[string]bool{}
	behind := regexp.MustCompile(`^(/api/v1/actors/\{path\})(/mailbox|/state|/failures|/traffic|:\{verb\})$`)
	for _, o := range operations() {
		told[o.method+" "+behind.ReplaceAllString(o.path, "$1")] = true
	}
	if diff := cmp.Diff(served, told); diff != "" {
		t.Errorf("routes (-served +described):\n%s", diff)
	}
}

// TestAnswersAreAsDescribed: each operation answers as its schema says, and with an Error
// otherwise.
func TestAnswersAreAsDescribed(t *testing.T) {
	backend := apitest.New(20)
	backend.Hooks.Uplink = "uplink0"
	a := apitest.Start(t, backend, func(c *server.Config) {
		c.Health = healthcheck.NewNodeHealth(healthcheck.NodeHealthConfig{State: func() healthcheck.NodeState { return healthcheck.NodeState{Known: true} }})
	})
	web, nat44 := "/api/v1/services/shop/service-003", "/api/v1/actors/agent/dataplane/nat44"
	seen := map[string]bool{}
	for _, tt := range []struct{ method, target, body string }{
		{"GET", "/livez", ""},
		{"GET", "/readyz?verbose", ""},
		{"GET", "/healthz", ""},
		{"GET", "/openapi.json", ""},
		{"GET", "/api/v1/status", ""},
		{"GET", "/api/v1/services?limit=3", ""},
		{"GET", "/api/v1/services?limit=none", ""},
		{"GET", web, ""},
		{"GET", web + "x", ""},
		{"GET", "/api/v1/interfaces", ""},
		{"GET", "/api/v1/nodes", ""},
		{"GET", "/api/v1/packet?source=10.1.1.9&destination=10.96.0.1:80/TCP", ""},
		{"GET", "/api/v1/packet?source=10.1.1.9", ""},
		{"GET", "/api/v1/sessions", ""},
		{"GET", "/api/v1/actors?sort=busy", ""},
		{"POST", nat44 + ":kill", ""},
		{"POST", nat44 + ":dance", ""},
		{"GET", nat44, ""},
		{"GET", nat44 + "/mailbox", ""},
		{"GET", nat44 + "/state", ""},
		{"GET", nat44 + "/traffic", ""},
		{"GET", "/api/v1/dead-letters", ""},
		{"GET", "/api/v1/services/shop/service-001/sessions", ""},
		{"GET", nat44 + "/failures", ""},
		{"GET", "/api/v1/tree", ""},
		{"GET", "/api/v1/top?by=busy", ""},
		{"POST", "/api/v1/resync", `{"reason": "drill"}`},
		{"GET", "/api/v1/resync", ""},
		{"GET", "/api/v1/diff", ""},
		{"GET", "/api/v1/addresses", ""},
		{"POST", "/api/v1/addresses", `{"leave": true}`},
		{"PUT", "/api/v1/external/edge", `{"kind": "ExternalConfiguration"}`},
		{"GET", "/api/v1/external", ""},
		{"GET", "/api/v1/external/edge", ""},
		{"DELETE", "/api/v1/external/edge", ""},
		{"POST", "/api/v1/chaos", `{"fault": "suspend", "actor": "agent/world"}`},
		{"POST", "/api/v1/chaos", `{"fault": "dance"}`},
		{"GET", "/api/v1/chaos", ""},
		{"DELETE", "/api/v1/chaos", ""},
		{"PUT", "/api/v1/pods/shop/web/interface", `{"interface": "uplink0"}`},
		{"DELETE", "/api/v1/pods/shop/web/interface", ""},
		{"GET", "/api/v1/events", ""},
		{"GET", "/api/v1/trace?follow=false", ""},
		{"PATCH", "/api/v1/events", ""},
	} {
		code, body, header := call(t, control(a), tt.method, tt.target, tt.body)
		path, err := described(tt.method, tt.target, code, header.Get("Content-Type"), []byte(body))
		if err != nil {
			t.Errorf("%s %s: %d %s\n%v", tt.method, tt.target, code, body, err)
		}
		if code < 300 {
			seen[tt.method+" "+path] = true
		}
	}
	for _, o := range operations() {
		if !seen[o.method+" "+o.path] {
			t.Errorf("no answer of %s %s was compared", o.method, o.path)
		}
	}
}

// TestDescribedRefuses: the check of answers finds errors.
func TestDescribedRefuses(t *testing.T) {
	for body, want := range map[string]string{
		`{"items": [], "total": 0}`:                       "",
		`{"items": null, "total": 0}`:                     "items: null",
		`{"items": []}`:                                   "total is missing",
		`{"items": [], "total": "0"}`:                     "total: 0 is no integer",
		`{"items": [], "total": 0, "new": 1}`:             "new is not described",
		`{"items": [{"service": "a/b"}], "total": 1}`:     "items[0]",
		`{"items": [], "total": 0, "next": ["a"]}`:        "next",
		strings.Repeat(`{"items": [], "total": 0}`, 2):    "JSON",
		`{"items": [], "total": 1.5}`:                     "total: 1.5 is no integer",
		`{"items": [], "total": 0, "next": "x" , "a": 1}`: "a is not described",
	} {
		_, err := described("GET", "/api/v1/services", 200, "application/json", []byte(body))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
	for _, target := range []string{"/api/v1/none", "/api/v1/services/shop", "/api/v1/pods/shop/web"} {
		if _, err := described("GET", target, 200, "application/json", []byte(`{}`)); err == nil {
			t.Errorf("%s is described", target)
		}
	}
}

// TestAuditOfChanges: every state-changing call on the control socket is recorded with its client
// and status, no other call is.
func TestAuditOfChanges(t *testing.T) {
	records := make(chan server.Audit, 100)
	a := apitest.Start(t, apitest.New(2), func(c *server.Config) { c.Audit = func(r server.Audit) { records <- r } })
	var want []string
	for _, tt := range []struct {
		method, target, body string
		client               *http.Client
		recorded             bool
	}{
		{"POST", "/api/v1/resync", "", tcp(a), false},
		{"GET", "/api/v1/resync", "", control(a), false},
		{"POST", "/api/v1/resync", "", control(a), true},
		{"POST", "/api/v1/actors/agent/none:kill", "", control(a), true},
		{"PUT", "/api/v1/external/edge", "{}", control(a), true},
		{"DELETE", "/api/v1/external/edge", "", control(a), true},
		{"DELETE", "/api/v1/chaos", "", control(a), true},
		{"PUT", "/api/v1/pods/shop/web/interface", "{}", control(a), true},
	} {
		code, _, _ := call(t, tt.client, tt.method, tt.target, tt.body)
		if tt.recorded {
			want = append(want, fmt.Sprint(tt.method, tt.target, code))
		}
	}
	if err := a.Stop(); err != nil {
		t.Fatal(err)
	}
	close(records)
	var got []string
	for r := range records {
		got = append(got, fmt.Sprint(r.Method, r.Path, r.Status))
		if !strings.Contains(r.Who, "uid ") {
			t.Errorf("who: %q", r.Who)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOpenAPIIsServed on both listeners.
func TestOpenAPIIsServed(t *testing.T) {
	a := apitest.Start(t, apitest.New(0), nil)
	for _, c := range []*http.Client{tcp(a), control(a)} {
		code, body, header := call(t, c, "GET", "/openapi.json", "")
		if code != 200 || header.Get("Content-Type") != "application/json" || !bytes.Equal([]byte(body), api.OpenAPI()) {
			t.Errorf("%d %s", code, header)
		}
	}
}
