// Package outside reads external configuration (vpp/external) from a file and from etcd, and stores
// the last document of every source, also that of the control socket, over restarts of actors and,
// if a directory is configured, of the process.
//
// Sources belongs to one agent. Its Run and Save are called from goroutines of actors; Run ends
// with its context, with all its goroutines.
package outside
