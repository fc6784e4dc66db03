package bootstrap

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/api"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
	"github.com/troupe-vpp/troupe/messages"
	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/sessions"
)

const shopTopology = `
interfaces:
- name: uplink0
  addresses: [192.168.16.1/24]
  gateway: 192.168.16.254
- name: spare0
  down: true
pods:
- {name: tap-web, address: 10.1.1.3}
routes:
- {to: 10.1.2.0/24, via: 192.168.16.2, interface: uplink0}
`

// TestSimulator runs the command, connects to its socket as an agent does, and stops it as a signal
// does.
func TestSimulator(t *testing.T) {
	dir, err := os.MkdirTemp("", "sim")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := write(t, dir, "topology.yaml", shopTopology)
	socket := filepath.Join(dir, "api.sock")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, in := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, []string{"simulator", "--api-socket", socket, "--stats-socket", dir + "/stats.sock", "--topology", file}, cli.Streams{Out: in, Errs: &errs})
		_ = in.Close()
	}()
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	if err != nil || line != "simulated VPP listens on "+socket+"\n" {
		t.Fatalf("%q, %v: %s", line, err, errs.String())
	}
	names := interfaceNames(t, socket)
	for name, up := range map[string]bool{"uplink0": true, "spare0": false, "tap-web": true} {
		if got, there := names[name]; !there || got != up {
			t.Errorf("interface %s: there %t, up %t, want up %t", name, there, got, up)
		}
	}
	if usage, err := sessions.NewReader(filepath.Join(dir, "stats.sock")).Read(ctx); err != nil || usage.Enabled {
		t.Errorf("statistics: %+v, %v", usage, err)
	}
	stop()
	if rest, err := io.ReadAll(lines); err != nil || string(rest) != "mutating 0\nrows 0\n" {
		t.Errorf("at its end it prints %q (%v) without any change", rest, err)
	}
	if got := <-code; got != exitOK {
		t.Errorf("exit code %d: %s", got, errs.String())
	}
	if _, err := os.Stat(socket); err == nil {
		t.Error("the socket is left behind")
	}
}

// interfaceNames asks VPP for its interfaces and whether they are up.
func interfaceNames(t *testing.T, socket string) map[string]bool {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	l := link.New(link.Config{Socket: socket}, slog.New(slog.DiscardHandler))
	up, done := make(chan struct{}, 8), make(chan error, 1)
	go func() {
		done <- l.Run(ctx, func(s *messages.LinkState) {
			if s.GetUp() {
				up <- struct{}{}
			}
		})
	}()
	select {
	case <-up:
	case <-ctx.Done():
		t.Fatal("no connection")
	}
	names := map[string]bool{}
	err := l.Dump(ctx, &interfaces.SwInterfaceDump{SwIfIndex: ^interface_types.InterfaceIndex(0)}, func(m api.Message) {
		if d, ok := m.(*interfaces.SwInterfaceDetails); ok {
			names[d.InterfaceName] = d.Flags&interface_types.IF_STATUS_API_FLAG_ADMIN_UP != 0
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	stop()
	<-done
	return names
}

func TestTopologyErrors(t *testing.T) {
	dir := t.TempDir()
	for name, tt := range map[string]struct{ in, want string }{
		"unknown field": {"interface: []\n", `unknown field "interface"`},
		"no address":    {"pods: [{name: a}]\n", "pods[0]: name and address are required"},
		"bad address":   {"pods: [{name: a, address: x}]\n", `unable to parse IP`},
		"no name":       {"interfaces: [{addresses: [10.0.0.1/24]}]\n", "interfaces[0].name: is required"},
		"route nowhere": {"routes: [{to: 10.0.0.0/8}]\n", "routes[0]: to, and via or interface, are required"},
		"name twice":    {"interfaces: [{name: a}, {name: a}]\n", "name is taken"},
	} {
		r := troupe("", "simulator", "--api-socket", dir+"/s", "--topology", write(t, dir, "t.yaml", tt.in))
		if r.code != exitFailed || !strings.Contains(r.errs, tt.want) || !strings.Contains(r.errs, dir+"/t.yaml") {
			t.Errorf("%s: exit code %d: %s", name, r.code, r.errs)
		}
	}
}
