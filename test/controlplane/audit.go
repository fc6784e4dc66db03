package controlplane

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"slices"
)

// auditPolicy records what service accounts ask for.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, userGroups: ["system:serviceaccounts"]}
- {level: None}
`

// Used returns what a service account has asked the API server for and was allowed, each once, in order: "list discovery.k8s.io/endpointslices",
// "watch nodes".
func (p *Plane) Used(namespace, account string) []string {
	p.t.Helper()
	log, err := os.ReadFile(p.file("audit.log"))
	if err != nil {
		p.t.Fatalf("read audit log: %v", err)
	}
	var used []string
	for line := range bytes.Lines(log) {
		var entry struct {
			Verb      string
			User      struct{ Username string }
			ObjectRef struct{ APIGroup, Resource string }
			Response  struct{ Code int } `json:"responseStatus"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // the last line may be half written
		}
		if entry.User.Username == "system:serviceaccount:"+namespace+":"+account && entry.ObjectRef.Resource != "" && entry.Response.Code != 403 {
			used = append(used, entry.Verb+" "+path.Join(entry.ObjectRef.APIGroup, entry.ObjectRef.Resource))
		}
	}
	slices.Sort(used)
	return slices.Compact(used)
}
