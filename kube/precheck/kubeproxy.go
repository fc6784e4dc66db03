package precheck

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// KubeProxy returns the number of nodes for which the DaemonSet kube-system/kube-proxy has pods; 0
// = there is no such DaemonSet, or the user has no right to read it.
func KubeProxy(ctx context.Context, client *apiserver.Client) (nodes int) {
	var set struct {
		Status struct {
			DesiredNumberScheduled int `json:"desiredNumberScheduled"`
		} `json:"status"`
	}
	const path = "/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy"
	answer, err := client.Core().Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).MaxRetries(0).DoRaw(ctx)
	if err != nil || json.Unmarshal(answer, &set) != nil {
		return 0
	}
	return set.Status.DesiredNumberScheduled
}
