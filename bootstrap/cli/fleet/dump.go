package fleet

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/api"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// Limits of an archive, which may come from any source: bytes of a file and of the unpacked
// archive, and nodes.
const (
	mostFile    = 512 << 20
	mostArchive = 1 << 30
	mostNodes   = 10_000
)

// dumpManifest is the first file of an archive.
type dumpManifest struct {
	// Time is when the archive was written, Version the version of the program that wrote it.
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	// Missing are the nodes without an answer, with the reason.
	Missing map[string]string `json:"missing"`
	// Left names the data that an archive leaves out.
	Left string `json:"left"`
}

// left is dumpManifest.Left.
const left = "no states of actors, no contents of messages, no sessions of clients, no documents of external configuration"

// writeArchive writes an archive. Each node has one file for each of its parts.
func writeArchive(to io.Writer, m dumpManifest, nodes []*api.Dump) error {
	m.Left = left
	packed := gzip.NewWriter(to)
	files := tar.NewWriter(packed)
	err := add(files, manifestName, m.Time, m)
	for _, n := range nodes {
		if err != nil {
			break
		}
		err = writeNode(files, m.Time, n)
	}
	return errors.Join(err, files.Close(), packed.Close())
}

// writeNode writes the files of a node.
func writeNode(files *tar.Writer, at time.Time, n *api.Dump) error {
	if !isName(n.Name) {
		return fmt.Errorf("%q is no name of a node", n.Name)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if err := add(files, path.Join("nodes", n.Name, name+".json"), at, parts[name]); err != nil {
			return err
		}
	}
	return nil
}

// add adds a file.
func add(files *tar.Writer, name string, at time.Time, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: at, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = files.Write(text)
	return err
}

// readArchive reads an archive; its nodes are ordered by name. It skips files with unknown names
// unread, and refuses everything that writeArchive does not write: files that are not regular, a
// file that is there twice, a node under the name of another one, and sizes above the limits.
func readArchive(from io.Reader) (*dumpManifest, []*api.Dump, error) {
	packed, err := gzip.NewReader(from)
	if err != nil {
		return nil, nil, err
	}
	files, budget := tar.NewReader(&limited{packed, mostArchive}), cli.NewBudget(mostArchive)
	manifest, parts, known := &dumpManifest{}, map[string]map[string]json.RawMessage{}, partNames()
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		node, part, ok := partOf(header.Name)
		isManifest := header.Name == manifestName
		if !isManifest && !(ok && known[part]) {
			continue
		}
		text, err := readFile(files, header, budget)
		switch {
		case err != nil:
		case isManifest && !manifest.Time.IsZero(), !isManifest && parts[node][part] != nil:
			err = errors.New("the file is there twice")
		case isManifest:
			err = cli.Decode(text, manifest)
		case parts[node] == nil && len(parts) == mostNodes:
			err = fmt.Errorf("more than %d nodes: %w", mostNodes, cli.ErrTooLarge)
		default:
			if parts[node] == nil {
				parts[node] = map[string]json.RawMessage{}
			}
			parts[node][part] = text
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	if manifest.Time.IsZero() {
		return nil, nil, errors.New("it has no manifest.json: no archive of troupe sysdump")
	}
	var nodes []*api.Dump
	for name, part := range parts {
		n, err := nodeOf(name, part)
		if err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", name, err)
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *api.Dump) int { return strings.Compare(a.Name, b.Name) })
	return manifest, nodes, nil
}

// manifestName is the name of the manifest in the archive.
const manifestName = "manifest.json"

// partOf returns the node and the part in the name of a file: "nodes/NODE/PART.json".
func partOf(file string) (node, part string, ok bool) {
	words := strings.Split(file, "/")
	if len(words) != 3 || words[0] != "nodes" || !isName(words[1]) {
		return "", "", false
	}
	part, ok = strings.CutSuffix(words[2], ".json")
	return words[1], part, ok
}

// partNames are the parts of a node.
func partNames() map[string]bool {
	names := map[string]bool{}
	for field := range reflect.TypeFor[api.Dump]().Fields() {
		names[field.Tag.Get("json")] = true
	}
	return names
}

// readFile reads a regular file. A sparse one has a large size and no content.
func readFile(files io.Reader, header *tar.Header, budget *cli.Budget) ([]byte, error) {
	for record := range header.PAXRecords {
		if strings.HasPrefix(record, "GNU.sparse.") {
			return nil, errors.New("the file is sparse")
		}
	}
	switch {
	case header.Typeflag != tar.TypeReg:
		return nil, errors.New("the file is not a regular one")
	case header.Size > mostFile:
		return nil, fmt.Errorf("%d bytes: %w", header.Size, cli.ErrTooLarge)
	}
	return budget.Read(files, header.Size)
}

// nodeOf decodes the parts of a node.
func nodeOf(name string, parts map[string]json.RawMessage) (*api.Dump, error) {
	n := &api.Dump{}
	for part, text := range parts {
		// an object with one field, so that no copy of all parts is needed
		whole := slices.Concat([]byte(`{"`+part+`":`), text, []byte(`}`))
		if err := cli.Decode(whole, n); err != nil {
			return nil, fmt.Errorf("%s: %w", part, err)
		}
	}
	if n.Name != name || n.Status != nil && n.Status.Node != name {
		return nil, errors.New("the files are of another node")
	}
	return n, nil
}

// limited is a reader that fails after a number of bytes.
type limited struct {
	from io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, cli.ErrTooLarge
	}
	n, err := l.from.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// mostName is the length of the longest name of an object in Kubernetes.
const mostName = 253

// isName reports whether a text is a DNS subdomain, as the names of nodes, namespaces and services
// are. Only such a text becomes a part of a path.
func isName(text string) bool {
	for label := range strings.SplitSeq(text, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return len(text) <= mostName && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.')
	})
}
