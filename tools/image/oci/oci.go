// Package oci writes container images FROM scratch: an archive in the layout of the OCI image
// specification, as containerd, podman, docker and skopeo read it. Write is a function of its
// arguments: equal images are equal archives, byte by byte.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path"
)

// Image is the content of an image for one platform.
type Image struct {
	// OS and Architecture in Go's words, "linux" and "arm64".
	OS, Architecture string
	// Files are in the order of the archive: a directory before its content.
	Files []File
	// Entrypoint is the command that a container runs.
	Entrypoint []string
	// Env are the variables of the container, "PATH=/".
	Env []string
	// User is "uid:gid".
	User string
	// Labels describe the image, for example org.opencontainers.image.version.
	Labels map[string]string
}

// File is a file or an empty directory of the image, owned by root.
type File struct {
	// Path without a slash at the beginning. One with a slash at the end is a directory.
	Path string
	// Mode are the permission bits, in the bits of Unix: 0o1777 for a directory like /tmp.
	Mode int64
	// Content of a file.
	Content []byte
}

// Media types of the OCI image specification.
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type imageConfig struct {
	platform
	Config struct {
		User       string            `json:"User,omitempty"`
		Entrypoint []string          `json:"Entrypoint"`
		Env        []string          `json:"Env,omitempty"`
		Labels     map[string]string `json:"Labels,omitempty"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// Write writes an archive with one image for several platforms under a name, for example
// troupe.dev/troupe:v1.
func Write(w io.Writer, name string, images []Image) error {
	a := &archive{tar: tar.NewWriter(w), written: map[string]bool{}}
	all := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, i := range images {
		m, err := a.image(i)
		if err != nil {
			return fmt.Errorf("write the image for %s/%s: %w", i.OS, i.Architecture, err)
		}
		m.Platform = &platform{i.Architecture, i.OS}
		all.Manifests = append(all.Manifests, m)
	}
	list, err := a.document(typeIndex, all)
	if err != nil {
		return err
	}
	list.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
	top, err := json.Marshal(index{SchemaVersion: 2, MediaType: typeIndex, Manifests: []descriptor{list}})
	if err != nil {
		return err
	}
	if err := a.file(File{Path: "index.json", Mode: 0o644, Content: top}); err != nil {
		return err
	}
	if err := a.file(File{Path: "oci-layout", Mode: 0o644, Content: []byte(`{"imageLayoutVersion":"1.0.0"}`)}); err != nil {
		return err
	}
	return a.tar.Close()
}

// archive is a tar file without anything that differs from one run to the next.
type archive struct {
	tar     *tar.Writer
	written map[string]bool // digests
}

// image writes the blobs of one platform and returns the descriptor of its manifest.
func (a *archive) image(i Image) (descriptor, error) {
	var layer bytes.Buffer
	plain := sha256.New()
	zip := gzip.NewWriter(&layer)
	content := archive{tar: tar.NewWriter(io.MultiWriter(zip, plain))}
	for _, f := range i.Files {
		if err := content.file(f); err != nil {
			return descriptor{}, err
		}
	}
	if err := content.tar.Close(); err != nil {
		return descriptor{}, err
	}
	if err := zip.Close(); err != nil {
		return descriptor{}, err
	}
	var c imageConfig
	c.Architecture, c.OS = i.Architecture, i.OS
	c.Config.User, c.Config.Entrypoint, c.Config.Env, c.Config.Labels = i.User, i.Entrypoint, i.Env, i.Labels
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{digest(plain.Sum(nil))}
	config, err := a.document(typeConfig, c)
	if err != nil {
		return descriptor{}, err
	}
	files, err := a.blob(typeLayer, layer.Bytes())
	if err != nil {
		return descriptor{}, err
	}
	return a.document(typeManifest, manifest{SchemaVersion: 2, MediaType: typeManifest, Config: config, Layers: []descriptor{files}})
}

// document writes a blob in JSON.
func (a *archive) document(mediaType string, value any) (descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return a.blob(mediaType, content)
}

// blob writes a blob under its digest, once.
func (a *archive) blob(mediaType string, content []byte) (descriptor, error) {
	sum := sha256.Sum256(content)
	d := descriptor{MediaType: mediaType, Digest: digest(sum[:]), Size: len(content)}
	if a.written[d.Digest] {
		return d, nil
	}
	a.written[d.Digest] = true
	return d, a.file(File{Path: path.Join("blobs", "sha256", hex.EncodeToString(sum[:])), Mode: 0o644, Content: content})
}

// file adds one file to the tar file, as of 1970.
func (a *archive) file(f File) error {
	head := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Mode: f.Mode, Size: int64(len(f.Content)), Format: tar.FormatUSTAR}
	if f.Path[len(f.Path)-1] == '/' {
		head.Typeflag = tar.TypeDir
	}
	if err := a.tar.WriteHeader(head); err != nil {
		return err
	}
	_, err := a.tar.Write(f.Content)
	return err
}

func digest(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }
