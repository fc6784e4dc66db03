package controlplane

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
)

// auditPolicy lets the API server write down the requests of service accounts: once when they are
// answered, watches when they begin.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
- {level: None}
`

// Request is a request of a service account to the API server.
type Request struct {
	Verb     string // in the words of RBAC
	Resource string // with its group: "services", "leases.coordination.k8s.io"
}

// Requests returns how often the service accounts were allowed and refused each kind of request
// since the control plane was started.
func (p *Plane) Requests() (allowed, refused map[Request]int) {
	p.t.Helper()
	allowed, refused = map[Request]int{}, map[Request]int{}
	log, err := os.ReadFile(p.file("audit.log"))
	if err != nil && !errors.Is(err, os.ErrNotExist) { // there is none before the first request
		p.t.Fatalf("read audit log: %v", err)
	}
	log = log[:bytes.LastIndexByte(log, '\n')+1] // a line may be half written
	for events := json.NewDecoder(bytes.NewReader(log)); ; {
		var event struct {
			Verb      string
			ObjectRef *struct{ Resource, APIGroup string }
			Status    struct{ Code int } `json:"responseStatus"`
		}
		switch err := events.Decode(&event); {
		case errors.Is(err, io.EOF):
			return allowed, refused
		case err != nil:
			p.t.Fatalf("decode audit log: %v", err)
		case event.ObjectRef == nil: // /version and the like
			continue
		}
		r := Request{event.Verb, event.ObjectRef.Resource}
		if event.ObjectRef.APIGroup != "" {
			r.Resource += "." + event.ObjectRef.APIGroup
		}
		if event.Status.Code == http.StatusForbidden {
			refused[r]++
		} else {
			allowed[r]++
		}
	}
}
