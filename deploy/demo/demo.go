// Package demo holds the cluster of the demo: the nodes, pods and services of a small shop, as
// kubectl would print them, and the catalog of what it uses outside.
package demo

import "embed"

// Files are the YAML files of the cluster, by name.
//
//go:embed *.yaml
var Files embed.FS

// Catalog is the catalog of services outside the cluster, in the directory catalog.
//
//go:embed catalog
var Catalog embed.FS
