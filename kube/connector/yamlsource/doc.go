// Package yamlsource is the source that reads a catalog from a YAML or JSON file, or from those of
// a directory:
//
//	services:
//	- name: billing
//	  ports: [{name: http, port: 80, protocol: TCP}]
//	  instances: [{address: 192.0.2.10, ports: {http: 8080}, healthy: true}]
//
// Decoding is strict: a file with an unknown field or a value that cannot be used is not used at
// all, each error is a problem with its line, and the snapshot is incomplete. Incomplete snapshots
// delete nothing, so the gate keeps the last good state of that file, also over a restart; the
// source itself keeps none. Services that are only moved from file to file do not vanish.
//
// A Source is run by one goroutine, which owns it and publishes; see package watch for how it
// follows the files.
package yamlsource
