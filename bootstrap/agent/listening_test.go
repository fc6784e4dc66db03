package agent

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const title = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

// tables writes the kernel's tables, "tcp 0100007F:1F90 0A" for a socket.
func tables(t *testing.T, sockets ...string) string {
	t.Helper()
	proc := t.TempDir()
	files := map[string]string{"net/tcp": title, "net/tcp6": title, "net/udp": title, "net/udp6": title, "sys/net/ipv4/ip_local_port_range": "32768\t60999\n"}
	for _, s := range sockets {
		f := strings.Fields(s)
		files["net/"+f[0]] += "   0: " + f[1] + " 00000000:0000 " + f[2] + " 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0\n"
	}
	for name, content := range files {
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return proc
}

func TestPorts(t *testing.T) {
	for name, tc := range map[string]struct{ socket, want string }{
		"at all addresses":       {"tcp 00000000:280A 0A", "10250/TCP"},
		"at one address":         {"tcp 0110A8C0:0016 0A", "22/TCP"},
		"at all, IPv6":           {"tcp6 00000000000000000000000000000000:280A 0A", "10250/TCP"},
		"loopback":               {"tcp 0100007F:1F90 0A", ""},
		"loopback, IPv6":         {"tcp6 00000000000000000000000001000000:1F90 0A", ""},
		"loopback, mapped":       {"tcp6 0000000000000000FFFF00000100007F:1F90 0A", ""},
		"a connection":           {"tcp 0110A8C0:0016 01", ""},
		"TCP, a client's number": {"tcp 00000000:9C40 0A", "40000/TCP"},
		"UDP":                    {"udp 00000000:0035 07", "53/UDP"},
		"UDP, a client":          {"udp 00000000:9C40 07", ""},
		"UDP with a peer":        {"udp 00000000:0035 01", ""},
		"not a line":             {"tcp 00:280A 0A", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newListening(tables(t, tc.socket), slog.New(slog.DiscardHandler)).Read(time.Unix(0, 0)); strings.Join(got, " ") != tc.want {
				t.Errorf("%v, want %s", got, tc.want)
			}
		})
	}
}

// TestPortsStay while a daemon restarts, and while the tables cannot be read, which is logged once.
func TestPortsStay(t *testing.T) {
	var log strings.Builder
	p, begin := newListening(tables(t, "udp 00000000:0035 07", "tcp 00000000:0016 0A"), slog.New(slog.NewTextHandler(&log, nil))), time.Unix(0, 0)
	for _, step := range []struct {
		proc string
		at   time.Duration
		want []string
		logs int
	}{
		{p.proc, 0, []string{"22/TCP", "53/UDP"}, 0},
		{tables(t, "tcp 00000000:0016 0A"), portKept, []string{"22/TCP", "53/UDP"}, 0},
		{tables(t), portKept + time.Second, []string{"22/TCP"}, 0},
		{t.TempDir(), 3 * portKept, []string{"22/TCP"}, 1},
		{t.TempDir(), 4 * portKept, []string{"22/TCP"}, 1},
		{tables(t), 5 * portKept, []string{}, 1},
	} {
		p.proc = step.proc
		if got := p.Read(begin.Add(step.at)); !slices.Equal(got, step.want) || strings.Count(log.String(), "\n") != step.logs {
			t.Errorf("after %s: %v, want %v; logged %s", step.at, got, step.want, &log)
		}
	}
}

// TestPortsOfThisMachine: the kernel prints what the reader understands.
func TestPortsOfThisMachine(t *testing.T) {
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Skip("this system has no /proc/net/tcp:", err)
	}
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	want := strconv.Itoa(l.Addr().(*net.TCPAddr).Port) + "/TCP"
	if got := newListening("/proc", slog.New(slog.DiscardHandler)).Read(time.Now()); !slices.Contains(got, want) {
		t.Errorf("%v, want %s among them", got, want)
	}
}
