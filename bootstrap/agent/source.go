package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/durable"
	"github.com/troupe-vpp/troupe/kube/files"
	"github.com/troupe-vpp/troupe/kube/informers"
	"github.com/troupe-vpp/troupe/kube/mirror"
)

// kubeSource makes the configured source, with the client of the API server if it uses one.
func (a *Agent) kubeSource() (kube.Source, *apiserver.Client, error) {
	log := a.log.With("part", "kube")
	if dir, ok := a.cfg.Kubernetes.FilesDir(); ok {
		return files.New(dir, a.cfg.NodeName, log), nil, nil
	}
	serving, err := a.cfg.Services.Serving()
	if err != nil {
		return nil, nil, err
	}
	client, err := a.connectKubernetes(informers.ClientConfig{
		Kubeconfig: a.cfg.Kubernetes.Kubeconfig, Servers: a.cfg.Kubernetes.APIServer, ServiceCIDRs: serving.ServiceCIDRs,
		QPS: float32(a.cfg.Kubernetes.QPS), Burst: a.cfg.Kubernetes.Burst,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	return informers.New(client, informers.Config{
		NodeName: a.cfg.NodeName, ServiceCIDRs: len(serving.ServiceCIDRs) == 0, FollowExternalIPs: a.cfg.Services.FollowExternalIPs(),
		AddressPools: a.cfg.Addresses.Enabled,
	}, log), client, nil
}

// publishedTimeout limits the read of kube-public/cluster-info at the start.
const publishedTimeout = 5 * time.Second

// connectKubernetes makes the client of the API server. The agent itself makes the ClusterIP work,
// so it must not depend on it. If that is the only known address, it takes the address in
// kube-public/cluster-info, or the address of an earlier start.
func (a *Agent) connectKubernetes(cfg informers.ClientConfig) (*apiserver.Client, error) {
	client, err := informers.NewClient(cfg)
	if !errors.Is(err, informers.ErrClusterIP) {
		return client, err
	}
	server, unpublished := a.publishedServer(cfg)
	if unpublished != nil {
		return nil, fmt.Errorf("%w; or let something serve the ClusterIP at the first start of the agent: %w", err, unpublished)
	}
	cfg.Servers = []string{server}
	return informers.NewClient(cfg)
}

// publishedServer returns the address in kube-public/cluster-info and saves it in the data
// directory. While the ClusterIP does not answer, it returns the saved address.
func (a *Agent) publishedServer(cfg informers.ClientConfig) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), publishedTimeout)
	defer cancel()
	file := filepath.Join(a.cfg.DataDir, "apiserver")
	server, err := informers.PublishedServer(ctx, cfg)
	if a.cfg.DataDir == "" {
		return server, err
	}
	if err != nil {
		saved, unread := os.ReadFile(file)
		if unread != nil {
			return "", err
		}
		server = strings.TrimSpace(string(saved))
		a.log.Warn("the address of the API server is that of an earlier start", "server", server, "err", err)
		return server, nil
	}
	a.log.Info("the address of the API server is that of kube-public/cluster-info", "server", server)
	if err := os.WriteFile(file, []byte(server+"\n"), 0o600); err != nil {
		a.log.Warn("cannot save the address of the API server", "err", err)
	}
	return server, nil
}

// mirrored puts the local mirror in front of a source, if a directory is configured for it.
func (a *Agent) mirrored(source kube.Source) kube.Source {
	dir := a.cfg.MirrorDir()
	if dir == "" {
		return source
	}
	out := mirror.New(source, mirror.NewStore(dir, durable.Disk{}), mirror.Config{
		Node: a.cfg.NodeName, Origin: origin(a.cfg.Kubernetes), Grace: a.cfg.Mirror.Grace.Duration(),
		ConfirmEmpty: a.cfg.Mirror.ConfirmEmpty.Duration(), Observer: a.metrics,
	}, a.log.With("part", "mirror"))
	if s, ok := source.(*files.Source); ok {
		if earlier := out.Earlier(); earlier != nil {
			s.Remember(earlier)
		}
	}
	return out
}

// origin names the place that a source reads. It leaves out the address of an API server, because a
// cluster may change it.
func origin(k config.Kubernetes) string {
	dir, ok := k.FilesDir()
	if !ok {
		return k.Source
	}
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return config.SourceFilesPrefix + dir
}
