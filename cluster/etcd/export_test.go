package etcd

import "crypto/tls"

// For the tests, which are outside of the package because etcdtest imports it.
const (
	MaxSocketPath = maxSocketPath
	DataDirName   = dataDirName
	SocketName    = socketName
)

// TryLock locks a file for this process.
var TryLock = tryLock

// ForceCommit writes what the server has accepted to its database.
func (e *Embedded) ForceCommit() { e.server.Server.Backend().ForceCommit() }

// Hold keeps the server from stopping until the returned function is called: its database cannot be
// closed.
func (e *Embedded) Hold() (release func()) {
	tx := e.server.Server.Backend().BatchTx()
	tx.LockOutsideApply()
	return tx.Unlock
}

// TLS is the configuration of the client's connections.
func (cfg ClientConfig) TLS() (*tls.Config, error) { return cfg.tls() }
