// Package files reads Kubernetes objects from YAML and JSON: Decode takes one stream, such as the
// output of kubectl get -o yaml, and Source watches a directory and is a kube.Source.
//
// # What is read
//
// A stream holds any number of YAML documents, JSON values, or both; each is an object or a List of
// objects. The package reads Service, Node, Pod, EndpointSlice and ServiceCIDR, all in version v1;
// it counts and ignores other kinds. Fields that the agent does not need or know are ignored. A
// missing namespace is "default", as for kubectl. Everything else that kubectl would refuse is an
// ObjectError that names the object, its line and the field; all other objects are read.
//
// Input may be hostile: documents, objects, aliases, depth and the number of errors are limited
// (decode.go).
//
// # The directory
//
// Source reads every *.yaml, *.yml and *.json file of the directory, without subdirectories and
// hidden files. It watches the directory, not the files, to notice editors that replace files and
// ConfigMap volumes that swap a symlink. Where no events arrive, a slow poll finds changes. An
// object that cannot be decoded any more keeps its last good value, and an error stays visible.
// With a local mirror this survives a restart of the agent (Source.Remember). An object that is no
// longer in a file is gone. A file that becomes shorter without being replaced must settle first,
// because "kubectl get > FILE" empties it before it writes. If an object occurs in two files, the
// first file by name counts.
//
// # Concurrency
//
// The goroutine of Source.Run owns everything. The only other goroutine is fsnotify's, and both end
// with the context. The Sink is called from Run's goroutine.
package files
