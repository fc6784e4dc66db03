package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/troupe-vpp/troupe/kube/apiserver"
	"github.com/troupe-vpp/troupe/kube/informers"
)

// publishedTimeout is how long the agent waits for kube-public/cluster-info at its start.
const publishedTimeout = 5 * time.Second

// connectKubernetes makes the client of the API server. Where the only known address is the
// ClusterIP, it takes that of kube-public/cluster-info, or the address of an earlier start.
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

// publishedServer returns the address in kube-public/cluster-info and keeps it in the data
// directory. While the ClusterIP does not answer, it returns the one that was kept.
func (a *Agent) publishedServer(cfg informers.ClientConfig) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), publishedTimeout)
	defer cancel()
	file := filepath.Join(a.cfg.DataDir, "apiserver")
	server, err := informers.PublishedServer(ctx, cfg)
	if a.cfg.DataDir == "" {
		return server, err
	}
	if err != nil {
		kept, unread := os.ReadFile(file)
		if unread != nil {
			return "", err
		}
		server = strings.TrimSpace(string(kept))
		a.log.Warn("the address of the API server is that of an earlier start", "server", server, "err", err)
		return server, nil
	}
	a.log.Info("the address of the API server is that of kube-public/cluster-info", "server", server)
	if err := os.WriteFile(file, []byte(server+"\n"), 0o600); err != nil {
		a.log.Warn("the address of the API server is not kept", "err", err)
	}
	return server, nil
}
