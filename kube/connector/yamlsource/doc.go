// Package yamlsource is the source that reads a catalog from a YAML or JSON file, or from the files
// of a directory:
//
//	services:
//	- name: billing
//	  ports: [{name: http, port: 80, protocol: TCP}]
//	  instances: [{address: 192.0.2.10, ports: {http: 8080}, healthy: true}]
//
// Decoding is strict: a file with an unknown field or an unusable value is not used. Each error is
// a problem with its line, and the snapshot is incomplete. Incomplete snapshots delete nothing, so
// the gate keeps the last good state of that file, also over a restart; the source itself keeps no
// state. A service that moves from one file to another does not vanish.
//
// One goroutine owns a Source and publishes. Package watch tells it when to read the files.
package yamlsource
