// Package files reads Kubernetes objects from YAML and JSON: Decode takes one stream, such as the
// output of kubectl get -o yaml, and Source watches a directory and is a kube.Source.
//
// # What is read
//
// A stream holds any number of YAML documents, JSON values, or both; each is an object or a List of
// objects. Service, Node, Pod (v1) and EndpointSlice (discovery.k8s.io/v1) are taken, other kinds
// are counted and ignored. Fields that are not needed, or that a newer API server knows, are
// ignored. A missing namespace is "default", as for kubectl. Everything else that kubectl would
// refuse is an ObjectError that names the object, its line and the field, and nothing else is lost
// with it.
//
// Input may be hostile: documents, objects, aliases, depth and the number of errors are limited
// (limits.go).
//
// # The directory
//
// Every *.yaml, *.yml and *.json in it counts, subdirectories and hidden files do not. It is
// watched as a directory, so that editors that replace files and ConfigMap volumes that swap a
// symlink are seen; a slow poll helps where no events arrive. An object that cannot be decoded any
// more keeps its last good value and an error stays visible, also over a restart of the agent where
// there is a local mirror (Source.Remember); an object that is no longer there is gone. Of objects
// that occur twice the one in the first file, by name, counts.
//
// # Concurrency
//
// Source.Run owns everything in one goroutine; besides it only the goroutine of fsnotify exists,
// and both end with the context. The Sink is called from Run's goroutine.
package files
