//go:build !agent

package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/troupe-vpp/troupe/bootstrap/config"
	"github.com/troupe-vpp/troupe/cluster/etcd"
)

// Errors of an embedded etcd that ends before the agent.
var (
	errEtcdEnded   = errors.New("the embedded etcd ended")
	errUnexplained = errors.New("without an error")
)

// embeddedEtcd starts an etcd inside this process. It locks the directory at once, so that a second
// agent, started by mistake, stops before it changes anything. etcd starts in the background: a
// slow disk delays node sync only.
func (a *Agent) embeddedEtcd() (connect, error) {
	etcd, err := etcd.OpenEmbedded(etcd.EmbeddedConfig{
		Dir: a.cfg.EtcdDataDir(), NoSync: a.cfg.VPP.Mode == config.VPPSimulated, Logger: a.log.With("part", "etcd"),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err := etcd.Start(ctx); err != nil {
			if ctx.Err() == nil {
				a.fail(err)
			}
			return
		}
		close(ready)
		select {
		case <-ctx.Done():
		case err := <-etcd.Err():
			a.fail(fmt.Errorf("%w: %w", errEtcdEnded, cmp.Or(err, errUnexplained)))
		}
	}()
	a.onClose("embedded etcd", func(deadline context.Context) error {
		cancel()
		select {
		case <-done:
			return etcd.Close()
		case <-deadline.Done():
			return deadline.Err()
		}
	})
	return func(ctx context.Context) (*clientv3.Client, error) {
		select {
		case <-ready:
			return etcd.Client(), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil
}
