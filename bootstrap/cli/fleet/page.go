package fleet

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/bootstrap/page"
	"github.com/troupe-vpp/troupe/kube/healthcheck"
)

// servePage serves the page of all nodes until ctx ends. The page uses the rights of the user's
// kubeconfig, so it accepts only requests from this machine.
func (f *fleet) servePage(ctx context.Context, address string, std cli.Streams) error {
	if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() {
		return cli.Usagef("--serve: expected a loopback address and a port, such as 127.0.0.1:8080, got %q", address)
	}
	var one sync.Mutex // one request at a time queries the agents
	pages, err := page.Cluster(func(ctx context.Context) (titles []any, rows [][]any, err error) {
		one.Lock()
		defer one.Unlock()
		ctx, cancel := context.WithTimeout(ctx, f.timeout)
		defer cancel()
		lines, err := f.statuses(ctx, io.Discard)
		for i := range lines {
			row := lines[i].cells(time.Now())
			for j, cell := range row {
				row[j] = cli.Printable(fmt.Sprint(cell)) // for a terminal that gets the page
			}
			rows = append(rows, row)
		}
		return columns(), rows, err
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the page of all nodes: %w", err)
	}
	server := &http.Server{Handler: localOnly(pages), ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	fmt.Fprintf(std.Out, "all nodes: http://%s/, until Ctrl-C\n", listener.Addr())
	if err := healthcheck.Serve(ctx, server, listener, 0); err != nil {
		return fmt.Errorf("serve the page of all nodes: %w", err)
	}
	return nil
}

// localOnly refuses requests to a host name, because DNS rebinding could lead the name of another
// site here.
func localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at, err := netip.ParseAddrPort(r.Host); err != nil || !at.Addr().IsLoopback() {
			http.Error(w, "use the address that the command has printed", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
