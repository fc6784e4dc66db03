package bootstrap

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// TestSysdumpIsOpenedByLook: the commands print of the archive what they print of the agents.
func TestSysdumpIsOpenedByLook(t *testing.T) {
	s, file := newFleetOf(t), filepath.Join(t.TempDir(), "dump.tar.gz")
	r := troupe("", "sysdump", "--kubeconfig", s.kubeconfig, "--file", file)
	if r.code != 0 || !strings.Contains(r.out, file+" has 3 of 5 nodes; open it with: troupe look "+file) || !strings.Contains(r.out, "node n4: pod agent-n4 is Pending") {
		t.Fatalf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if r := troupe("", "sysdump", "--kubeconfig", s.kubeconfig, "--file", file); r.code == 0 || !strings.Contains(r.errs, "file exists") {
		t.Errorf("an archive was overwritten: %s%s", r.out, r.errs)
	}
	for _, args := range []string{
		"get services", "get service shop/service-001", "get interfaces", "get nodes", "get events", "get resync", "get sessions", "actors",
		"explain shop/service-000", "external list", "status -o json",
	} {
		live := troupe("", append(strings.Fields(args), "--node", "n1", "--kubeconfig", s.kubeconfig)...)
		got := troupe("", append([]string{"look", "--node", "n1", file}, strings.Fields(args)...)...)
		if live.code != got.code || ages.ReplaceAllString(live.out, "") != ages.ReplaceAllString(got.out, "") {
			t.Errorf("%s: exit code %d\n%s%s\nof the agent: %s", args, got.code, got.out, got.errs, live.out)
		}
	}
	all := squeeze(troupe("", "look", file, "status").out)
	for _, want := range []string{"n4 unknown", "n2 no v1.2.3", "differs: version v1.2.2"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if r := troupe("", "look", file, "get", "services"); r.code != exitUsage || r.errs != "troupe: expected --node NODE: the archive has n1, n2, n3\n" {
		t.Errorf("exit code %d: %s", r.code, r.errs)
	}
	if r := troupe("", "look", "--node", "n1", file, "actors", "show", "agent/dataplane/nat44"); r.code == 0 || !strings.Contains(r.errs, "an archive has no states and messages") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.errs)
	}
}

// TestLookServesThePage of each node, until it is interrupted.
func TestLookServesThePage(t *testing.T) {
	s, file := newFleetOf(t), filepath.Join(t.TempDir(), "dump.tar.gz")
	if r := troupe("", "sysdump", "--kubeconfig", s.kubeconfig, "--file", file); r.code != 0 {
		t.Fatal(r.errs)
	}
	address := serving(t, `n2 +http://(\S+)/`, "look", file)
	for path, want := range map[string]string{"": "read from VPP: EOF", "services": "shop/service-001", "nodes": "shop-b"} {
		text, status, err := cli.NewClient(address).Text(t.Context(), path)
		if err != nil || status != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/%s: %d %v: %s", path, status, err, text)
		}
	}
}

// serving runs a command that serves pages until the end of the test, and returns the address that
// it prints.
func serving(t *testing.T, pattern string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := &watchedOutput{}
	done := make(chan int, 1)
	go func() { done <- execute(ctx, args, cli.Streams{In: strings.NewReader(""), Out: out, Errs: io.Discard}) }()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("exit code %d", code)
		}
	})
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		if found := regexp.MustCompile(pattern).FindStringSubmatch(out.String()); found != nil {
			return found[1]
		}
	}
	t.Fatal(out.String())
	return ""
}

// watchedOutput is an output that a test reads while a command writes it.
type watchedOutput struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *watchedOutput) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *watchedOutput) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestSysdumpKeepsItsLimits: without time for an answer there is no archive, and a limit of size
// below 1 MiB is refused. Package fleet tests what an archive lacks above its limit.
func TestSysdumpKeepsItsLimits(t *testing.T) {
	s, file := newFleetOf(t), filepath.Join(t.TempDir(), "dump.tar.gz")
	if r := troupe("", "sysdump", "--kubeconfig", s.kubeconfig, "--file", file, "--timeout", "1ns"); r.code == 0 {
		t.Errorf("in no time: %s%s", r.out, r.errs)
	}
	if r := troupe("", "sysdump", "--kubeconfig", s.kubeconfig, "--file", file, "--size-limit", "0"); r.code != exitUsage {
		t.Errorf("without room: %s%s", r.out, r.errs)
	}
}
