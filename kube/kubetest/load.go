package kubetest

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

//go:embed testdata
var material embed.FS

// Load returns the cases.
func Load(t testing.TB) *File {
	t.Helper()
	const name = "service-cases.json"
	file, err := decode(Read(t, name))
	if err != nil {
		t.Fatalf("decode %s: %v", name, err)
	}
	if file.SchemaVersion != 1 {
		t.Fatalf("%s: schema version %d, want 1", name, file.SchemaVersion)
	}
	for i := range file.Cases {
		c := &file.Cases[i]
		c.Objects.Nodes = []*corev1.Node{c.Node.Object()}
		for j := range c.Steps {
			if n := c.Steps[j].Node; n != nil {
				c.Steps[j].Apply.Nodes = []*corev1.Node{n.Object()}
			}
		}
	}
	return file
}

// Read returns a file of testdata.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := material.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decode reads the file strictly: a misspelt field must not be overlooked.
func decode(text []byte) (*File, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var file File
	if err := decoder.Decode(&file); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return &file, nil
}
