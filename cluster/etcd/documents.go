package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Timeout of a request for documents, and the pause before a retry.
const (
	documentsTimeout = 5 * time.Second
	documentsRetry   = time.Second
)

// Documents follows the keys under a prefix, which ends with "/", until ctx ends. Whenever a
// document may have changed, it calls out from its own goroutine with all values, by the rest of
// their keys. A failed read calls out with the error, and is retried without limit.
//
// After each change it reads all documents again instead of applying the change, because they are
// few and change seldom.
func Documents(ctx context.Context, client *clientv3.Client, prefix string, out func(documents map[string][]byte, err error)) {
	for ctx.Err() == nil {
		revision, err := listDocuments(ctx, client, prefix, out)
		if err == nil {
			err = awaitChange(ctx, client, prefix, revision+1)
		}
		if err == nil || ctx.Err() != nil {
			continue
		}
		out(nil, fmt.Errorf("read %s* from etcd: %w", prefix, err))
		select {
		case <-ctx.Done():
		case <-time.After(documentsRetry):
		}
	}
}

// listDocuments calls out with all documents and returns their revision.
func listDocuments(ctx context.Context, client *clientv3.Client, prefix string, out func(map[string][]byte, error)) (int64, error) {
	brief, cancel := context.WithTimeout(ctx, documentsTimeout)
	defer cancel()
	response, err := client.Get(brief, prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	documents := make(map[string][]byte, len(response.Kvs))
	for _, kv := range response.Kvs {
		documents[strings.TrimPrefix(string(kv.Key), prefix)] = kv.Value
	}
	out(documents, nil)
	return response.Header.GetRevision(), nil
}

// errWatchEnded means that etcd ended a watch without an error.
var errWatchEnded = errors.New("the watch ended")

// awaitChange returns nil after a change since a revision, or if etcd has compacted that revision.
func awaitChange(ctx context.Context, client *clientv3.Client, prefix string, revision int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel()
	for response := range client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(revision)) {
		switch {
		case response.CompactRevision > 0, len(response.Events) > 0:
			return nil
		case response.Err() != nil:
			return response.Err()
		}
	}
	return errWatchEnded
}
