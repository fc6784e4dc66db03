package config

import (
	"cmp"
	"os"
)

// defaultNamespace is the namespace of the manifests.
const defaultNamespace = "troupe-system"

// HasEtcd reports whether there is an etcd, external or embedded.
func (a *Agent) HasEtcd() bool {
	return a.Etcd.Mode == EtcdEmbedded || a.Etcd.Mode == EtcdExternal && len(a.Etcd.Endpoints) > 0
}

// Store returns the node store, which is not StoreAuto, and the reason for the choice.
func (a *Agent) Store() (store, why string) {
	_, files := a.Kubernetes.FilesDir()
	switch {
	case a.NodeStore.Type != StoreAuto:
		return a.NodeStore.Type, "configured"
	case a.Etcd.Mode == EtcdEmbedded:
		return StoreEtcd, "etcd is embedded"
	case a.HasEtcd():
		return StoreEtcd, "etcd has endpoints"
	case a.Etcd.Mode == EtcdNone:
		return StoreNone, "etcd.mode is none"
	case files:
		return StoreNone, "there is neither an etcd nor an API server"
	default:
		return StoreKubernetes, "etcd has no endpoints and the source is the API server"
	}
}

// StoreNamespace is the namespace of the Leases of the node store.
func (a *Agent) StoreNamespace() string {
	return cmp.Or(a.NodeStore.Namespace, os.Getenv("POD_NAMESPACE"), defaultNamespace)
}
