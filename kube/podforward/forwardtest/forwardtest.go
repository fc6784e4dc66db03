// Package forwardtest is the part of an API server and a kubelet that forwards ports, for tests.
package forwardtest

import (
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/moby/spdystream"
)

// Upgrade makes a connection of SPDY of a request for pods/portforward, as a kubelet does.
func Upgrade(w http.ResponseWriter) (net.Conn, error) {
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "portforward.k8s.io"} {
		w.Header().Set(name, value)
	}
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, read, err := http.NewResponseController(w).Hijack()
	return &upgraded{conn, read}, err
}

// upgraded is a connection from which the HTTP server may have read already.
type upgraded struct {
	net.Conn
	read io.Reader
}

func (u *upgraded) Read(p []byte) (int, error) { return u.read.Read(p) }

// Forward answers a request for pods/portforward: it joins the client with an address. It returns
// when one of both has ended.
func Forward(w http.ResponseWriter, address string) {
	conn, err := Upgrade(w)
	if err != nil {
		return
	}
	defer conn.Close()
	kubelet, err := spdystream.NewConnection(conn, true)
	if err != nil {
		return
	}
	streams := make(chan *spdystream.Stream, 2)
	go kubelet.Serve(func(s *spdystream.Stream) {
		_ = s.SendReply(http.Header{}, false)
		streams <- s
	})
	kinds := map[string]*spdystream.Stream{}
	for len(kinds) < 2 {
		select {
		case s := <-streams:
			kinds[s.Headers().Get("streamType")] = s
		case <-kubelet.CloseChan():
			return
		}
	}
	data := kinds["data"]
	agent, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintf(kinds["error"], "error forwarding port %s to pod 1, uid : %v", data.Headers().Get("port"), err)
		_ = data.Reset()
		<-kubelet.CloseChan()
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
