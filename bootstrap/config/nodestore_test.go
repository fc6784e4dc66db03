package config

import "testing"

// TestStore chooses the node store.
func TestStore(t *testing.T) {
	endpoints := []string{"http://a:1"}
	for name, tt := range map[string]struct {
		change func(*Agent)
		want   string
	}{
		"nothing said":                 {func(*Agent) {}, StoreKubernetes},
		"files":                        {func(a *Agent) { a.Kubernetes.Source = "files:x" }, StoreNone},
		"endpoints":                    {func(a *Agent) { a.Etcd.Endpoints = endpoints }, StoreEtcd},
		"endpoints, files":             {func(a *Agent) { a.Kubernetes.Source, a.Etcd.Endpoints = "files:x", endpoints }, StoreEtcd},
		"embedded":                     {func(a *Agent) { a.Etcd.Mode = EtcdEmbedded }, StoreEtcd},
		"no etcd":                      {func(a *Agent) { a.Etcd.Mode = EtcdNone }, StoreNone},
		"no etcd, but leases":          {func(a *Agent) { a.Etcd.Mode, a.NodeStore.Type = EtcdNone, StoreKubernetes }, StoreKubernetes},
		"leases beside etcd":           {func(a *Agent) { a.Etcd.Endpoints, a.NodeStore.Type = endpoints, StoreKubernetes }, StoreKubernetes},
		"none in spite of etcd":        {func(a *Agent) { a.Etcd.Endpoints, a.NodeStore.Type = endpoints, StoreNone }, StoreNone},
		"etcd said, and there is none": {func(a *Agent) { a.NodeStore.Type = StoreEtcd }, StoreEtcd},
	} {
		cfg := Defaults()
		tt.change(cfg)
		if got, why := cfg.Store(); got != tt.want || why == "" {
			t.Errorf("%s: %q, because %q; want %q", name, got, why, tt.want)
		}
	}
}

// TestStoreNamespace prefers the configuration to the pod, and the pod to the default.
func TestStoreNamespace(t *testing.T) {
	cfg := Defaults()
	t.Setenv("POD_NAMESPACE", "")
	if got := cfg.StoreNamespace(); got != "troupe-system" {
		t.Errorf("default %q", got)
	}
	t.Setenv("POD_NAMESPACE", "pod")
	if got := cfg.StoreNamespace(); got != "pod" {
		t.Errorf("in a pod %q", got)
	}
	cfg.NodeStore.Namespace = "said"
	if got := cfg.StoreNamespace(); got != "said" {
		t.Errorf("configured %q", got)
	}
}
