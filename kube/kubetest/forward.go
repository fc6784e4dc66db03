package kubetest

//lint:file-ignore SA1019 the successor of httpstream would be one more direct dependency

import (
	"fmt"
	"io"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
)

// Forward answers a request for pods/portforward as a kubelet does: it joins the client with an
// address. It returns when one of both has ended.
func Forward(w http.ResponseWriter, r *http.Request, address string) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return // it has answered
	}
	streams := make(chan func() httpstream.Stream, 2)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, replied <-chan struct{}) error {
		streams <- func() httpstream.Stream { <-replied; return s } // a write before the reply may wait for ever
		return nil
	})
	if conn == nil {
		return // it has answered
	}
	defer conn.Close()
	kinds := map[string]httpstream.Stream{}
	for len(kinds) < 2 {
		select {
		case opened := <-streams:
			s := opened()
			kinds[s.Headers().Get("streamType")] = s
		case <-conn.CloseChan():
			return
		}
	}
	data := kinds["data"]
	agent, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintf(kinds["error"], "error forwarding port %s to pod 1, uid : %v", data.Headers().Get("port"), err)
		_ = data.Reset()
		_ = kinds["error"].Reset()
		<-conn.CloseChan()
		return
	}
	go func() {
		_, _ = io.Copy(agent, data)
		_ = agent.Close()
	}()
	_, _ = io.Copy(data, agent)
	_ = agent.Close()
	_ = data.Close()
}
