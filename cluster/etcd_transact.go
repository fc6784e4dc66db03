package cluster

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// transact satisfies Store with one etcd transaction.
func (s *etcdStore) transact(ctx context.Context, op *operation) wrote {
	resp, err := s.client.Txn(ctx).If(comparisons(op.guards)...).Then(branchOps(op.branches)...).Commit()
	if err != nil {
		return wrote{op: op, err: fmt.Errorf("%s %s: %w", op.verb, op.about, err)}
	}
	return wrote{op: op, ok: resp.Succeeded && carriedOut(resp), revision: resp.Header.GetRevision()}
}

func comparisons(guards []guard) []clientv3.Cmp {
	cmps := make([]clientv3.Cmp, len(guards))
	for i, g := range guards {
		// The modification revision of a key that does not exist is 0.
		cmps[i] = clientv3.Compare(clientv3.ModRevision(g.key), "=", g.mod)
	}
	return cmps
}

// branchOps nests the branches: a transaction for the first branch has the transaction for the rest
// as its else part.
func branchOps(branches []branch) []clientv3.Op {
	if len(branches) == 0 {
		return nil
	}
	b := branches[0]
	var ops []clientv3.Op
	for _, p := range b.puts {
		ops = append(ops, clientv3.OpPut(p.key, p.value))
	}
	for _, key := range b.deletes {
		ops = append(ops, clientv3.OpDelete(key))
	}
	return []clientv3.Op{clientv3.OpTxn(comparisons(b.guards), ops, branchOps(branches[1:]))}
}

// carriedOut reports whether etcd executed one of the branches.
func carriedOut(resp *clientv3.TxnResponse) bool {
	responses := resp.Responses
	for len(responses) == 1 {
		nested := responses[0].GetResponseTxn()
		if nested == nil || nested.GetSucceeded() {
			return true
		}
		responses = nested.GetResponses()
	}
	return false
}
