// Package outside reads external configuration (vpp/external) from a file and from etcd, and keeps what every source has said last, also that of
// the control socket, over restarts of actors and, where there is a directory, of the process.
//
// Sources belongs to one agent. Its Run and Save are called from goroutines of actors; Run ends with its context, and nothing goes on behind it.
package outside
