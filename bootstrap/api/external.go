package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"time"

	"sigs.k8s.io/yaml"
)

// External is external configuration.
type External struct {
	// Complete is true once every watched source has delivered its documents.
	Complete bool `json:"complete"`
	// Layers by source.
	Layers []ExternalLayer `json:"layers"`
	// Entries of all layers, ordered by name; of the same name the owner is first.
	Entries []ExternalEntry `json:"entries"`
	// Next is the cursor of the next page of entries; "" = this is the last one. Total counts the
	// entries of all pages. A Backend leaves both out.
	Next  string `json:"next,omitempty"`
	Total int    `json:"total"`
}

// ExternalLayer is the configuration of one source.
type ExternalLayer struct {
	// Source is the name of the layer: "file", "etcd:NAME", "etcd:NODE/NAME", or the name given at
	// the control socket.
	Source string `json:"source"`
	// Priority decides between layers that have the same entry; the larger one wins.
	Priority int `json:"priority"`
	// Entries is the number of its entries.
	Entries int `json:"entries"`
	// Document is the source text in JSON.
	Document json.RawMessage `json:"document,omitempty"`
	// Since is the time of its latest change.
	Since time.Time `json:"since,omitzero"`
	// Error is the reason why the present document is refused; "" = it is accepted.
	Error string `json:"error"`
}

// ExternalEntry is one entry of a layer with its state.
type ExternalEntry struct {
	// Name is the key of a mapping, "address IP", or "interface NAME".
	Name string `json:"name"`
	// Kind is static, identity, address or interface.
	Kind string `json:"kind"`
	// Source is the layer.
	Source string `json:"source"`
	// State is in-sync, pending, failed, refused (another owner has it) or shadowed (a layer above
	// has an entry of the same name).
	State string `json:"state"`
	// Owner is the present owner if it is not this layer: another layer, a service, or a
	// configuration in VPP.
	Owner string `json:"owner"`
	// Why is the reason for a state other than in-sync.
	Why string `json:"why"`
}

// ExternalResult answers a change of external configuration.
type ExternalResult struct {
	// Source is the layer.
	Source string `json:"source"`
	// Cause is the ID under which the journal has the command and its effects.
	Cause uint64 `json:"cause"`
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
	entries := slices.DeleteFunc(slices.Clone(all.Entries), func(e ExternalEntry) bool { return other(e.Source) })
	place := map[*ExternalEntry]string{} // entries keep their own order
	for i := range entries {
		place[&entries[i]] = fmt.Sprintf("%09d", i)
	}
	p := page(entries, q, func(e *ExternalEntry) cursor { return cursor{Key: place[e]} })
	layers := slices.DeleteFunc(append([]ExternalLayer{}, all.Layers...), func(l ExternalLayer) bool { return other(l.Source) })
	return &External{Complete: all.Complete, Layers: layers, Entries: p.Items, Next: p.Next, Total: p.Total}, nil
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

// deleteExternal answers when VPP has the configuration without the layer.
func (s *Server) deleteExternal(w http.ResponseWriter, r *http.Request) {
	s.changeExternal(w, r, nil, nil)
}

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
