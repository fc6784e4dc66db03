// Package demo holds the cluster of the demo: the nodes, pods and services of a small shop, as kubectl would print them.
package demo

import "embed"

// Files are the YAML files of the cluster, by name.
//
//go:embed *.yaml
var Files embed.FS
