package sysdump

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// mostArchive limits the unpacked archive, in bytes.
const mostArchive = 4 << 30

// Manifest is the first file of an archive.
type Manifest struct {
	// Time is when the archive was written, Version the version of the program that wrote it.
	Time    time.Time `json:"time"`
	Version string    `json:"version"`
	// Missing are the nodes without an answer, with the reason.
	Missing map[string]string `json:"missing"`
	// Left names the data that an archive leaves out.
	Left string `json:"left"`
}

// left is Manifest.Left.
const left = "no states of actors, no contents of messages, no sessions of clients, no documents of external configuration"

// Write writes an archive. Each node has one file for each of its parts.
func Write(to io.Writer, m Manifest, nodes []*Node) error {
	m.Left = left
	packed := gzip.NewWriter(to)
	files := tar.NewWriter(packed)
	err := add(files, "manifest.json", m.Time, m)
	for _, n := range nodes {
		if err != nil {
			break
		}
		err = writeNode(files, m.Time, n)
	}
	return errors.Join(err, files.Close(), packed.Close())
}

// writeNode writes the files of a node.
func writeNode(files *tar.Writer, at time.Time, n *Node) error {
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

// Read reads an archive; its nodes are ordered by name. It ignores unknown files.
func Read(from io.Reader) (*Manifest, []*Node, error) {
	packed, err := gzip.NewReader(from)
	if err != nil {
		return nil, nil, err
	}
	files := tar.NewReader(io.LimitReader(packed, mostArchive))
	manifest, parts := &Manifest{}, map[string]map[string]json.RawMessage{}
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, nil, err
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return nil, nil, err
		}
		name := strings.Split(header.Name, "/")
		switch {
		case header.Name == "manifest.json":
			if err := json.Unmarshal(text, manifest); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", header.Name, err)
			}
		case len(name) == 3 && name[0] == "nodes" && json.Valid(text):
			if parts[name[1]] == nil {
				parts[name[1]] = map[string]json.RawMessage{}
			}
			parts[name[1]][strings.TrimSuffix(name[2], ".json")] = text
		}
	}
	if manifest.Time.IsZero() {
		return nil, nil, errors.New("it has no manifest.json: no archive of troupe sysdump")
	}
	var nodes []*Node
	for name, part := range parts {
		text, err := json.Marshal(part)
		if err != nil {
			return nil, nil, err
		}
		n := &Node{}
		if err := json.Unmarshal(text, n); err != nil {
			return nil, nil, fmt.Errorf("node %s: %w", name, err)
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	return manifest, nodes, nil
}
