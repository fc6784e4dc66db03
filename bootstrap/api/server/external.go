package server

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/troupe-vpp/troupe/bootstrap/api"
)

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
