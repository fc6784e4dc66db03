// Package outside reads external configuration (vpp/external) from a file and from etcd, and stores
// the last document of every source, including the control socket. The documents survive restarts
// of actors and, if a directory is configured, of the process.
//
// Sources belongs to one agent. Goroutines of actors call its Run and Save. Run ends with its
// context, with all its goroutines.
package outside
