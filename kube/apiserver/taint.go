package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// RemoveTaint removes the taints with the key from a Node, whatever their effect, and reports
// whether it had one. It needs the rights get and patch of nodes. The patch fails where the taints
// have changed meanwhile.
func (c *Client) RemoveTaint(ctx context.Context, node, key string) (removed bool, err error) {
	object, api := &corev1.Node{}, c.groups[corev1.SchemeGroupVersion]
	if err := api.Get().Resource("nodes").Name(node).Do(ctx).Into(object); err != nil {
		return false, fmt.Errorf("read Node %s: %w", node, err)
	}
	var steps []map[string]string
	for i, taint := range slices.Backward(object.Spec.Taints) { // the places of the others stay
		if taint.Key == key {
			path := fmt.Sprintf("/spec/taints/%d", i)
			steps = append(steps, map[string]string{"op": "test", "path": path + "/key", "value": key}, map[string]string{"op": "remove", "path": path})
		}
	}
	if len(steps) == 0 {
		return false, nil
	}
	patch, err := json.Marshal(steps)
	if err != nil {
		return false, err
	}
	if err := api.Patch(types.JSONPatchType).Resource("nodes").Name(node).Body(patch).Do(ctx).Error(); err != nil {
		return false, fmt.Errorf("remove taint %s from Node %s: %w", key, node, err)
	}
	return true, nil
}
