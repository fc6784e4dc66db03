package healthcheck

import (
	"cmp"
	"context"
	"net/http"
)

// NodeServer serves the health of the node (port 10256) or metrics (port 9993) at an address of
// its own, like kube-proxy. It retries a taken address until it is free; a kube-proxy may still use
// it. It replaces a listener that breaks.
type NodeServer struct {
	socket   *socket
	cfg      Config
	reported string // Run only: the last problem
}

// NewNodeServer returns a server at an address, "host:port", that does not listen yet. It calls
// OnProblem with its address and no service, also when it listens.
func NewNodeServer(address string, handler http.Handler, cfg Config) *NodeServer {
	cfg.MostConnections = cmp.Or(cfg.MostConnections, nodeConnections)
	s := &NodeServer{cfg: cfg.withDefaults()}
	s.socket = newSocket("tcp", address, handler, &s.cfg, s.report)
	return s
}

// Address returns the address at which the server listens, "ip:port"; "" while it does not listen.
// Any goroutine may ask.
func (s *NodeServer) Address() string {
	if at, _ := s.socket.state(); at != nil {
		return at.String()
	}
	return ""
}

// Run serves until ctx ends, then closes everything and returns nil. It is called once.
func (s *NodeServer) Run(ctx context.Context) error {
	s.socket.listen()
	s.socket.run(ctx)
	return nil
}

// report passes on a problem that differs from the last one.
func (s *NodeServer) report() {
	text := ""
	at, err := s.socket.state()
	if at != nil {
		s.cfg.Log.Info("listening", "address", at.String())
	} else {
		text = err.Error()
	}
	if text == s.reported {
		return
	}
	s.reported = text
	if err != nil {
		s.cfg.Log.Warn("cannot listen, retrying; does a kube-proxy still run here?", "address", s.socket.address, "err", err)
	}
	s.cfg.OnProblem(Problem{Address: s.socket.address, Err: err})
}
