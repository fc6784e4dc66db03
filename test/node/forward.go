package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// requestTimeout is that of a request to a process of a node.
const requestTimeout = 10 * time.Second

// Forward makes an address of the machine's loopback reachable at an address of the node, until the
// test ends or stop is called.
func (n *Node) Forward(at, address string) (stop func()) {
	n.t.Helper()
	listener, err := n.Listen(at)
	if err != nil {
		n.t.Fatalf("listen on %s of %s: %v", at, n.Name, err)
	}
	stop = func() { _ = listener.Close() }
	n.t.Cleanup(stop)
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				out, err := net.Dial("tcp", address)
				if err != nil {
					_ = in.Close()
					return
				}
				relay(in, out)
			}()
		}
	}()
	return stop
}

// ServeClusterIP makes the API server reachable at its ClusterIP on the node, as kube-proxy does,
// until the test ends or stop is called.
func (n *Node) ServeClusterIP() (stop func()) {
	n.t.Helper()
	n.Do("ip", "address", "replace", controlplane.ClusterIP+"/32", "dev", "lo")
	return n.Forward(controlplane.ClusterIP+":443", n.plane.Address())
}

// relay joins two connections until one ends.
func relay(in, out net.Conn) {
	defer in.Close()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}

// Listen listens on an address in the network of the node.
func (n *Node) Listen(address string) (listener net.Listener, err error) {
	inside := n.within(func() { listener, err = net.Listen("tcp", address) })
	if inside != nil {
		return nil, inside
	}
	return listener, err
}

// within calls f in the network of the node. A socket stays in the network in which it was made.
// The thread goes back: it must not end, because processes that it has started would be killed with
// it (Pdeathsig).
func (n *Node) within(f func()) error {
	own, err := unix.Open("/proc/self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open network of the machine: %w", err)
	}
	defer unix.Close(own)
	other, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", n.pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open network of %s: %w", n.Name, err)
	}
	defer unix.Close(other)
	runtime.LockOSThread()
	if err = unix.Setns(other, unix.CLONE_NEWNET); err == nil {
		f()
		if err := unix.Setns(own, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("leave network of %s: %w", n.Name, err) // the thread stays locked
		}
	}
	runtime.UnlockOSThread()
	return err
}

// Dial connects to a TCP address from the network of the node.
func (n *Node) Dial(address string) (net.Conn, error) { return n.DialNetwork("tcp", address) }

// DialNetwork connects by "tcp" or "udp".
func (n *Node) DialNetwork(network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	return n.dial(ctx, network, address)
}

// Client sends requests from the network of the node, each on a connection of its own.
func (n *Node) Client() *http.Client {
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.dial}}
}

// dial connects from the network of the node.
func (n *Node) dial(ctx context.Context, network, address string) (connection net.Conn, err error) {
	inside := n.within(func() { connection, err = (&net.Dialer{}).DialContext(ctx, network, address) })
	if inside != nil {
		return nil, inside
	}
	return connection, err
}

// healthy asks /healthz.
func (n *Node) healthy(address string) error {
	answer, err := n.Client().Get("http://" + address + "/healthz")
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("healthz: %s", answer.Status)
	}
	return nil
}
