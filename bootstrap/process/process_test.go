package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// machine is the disk of the agents. Besides VPP, only the disk outlives them.
type machine struct {
	*testing.T
	vpp       string // API socket
	manifests string
	data      string
	control   string
	etcd      string // none or embedded
}

// process is one agent, from its start to its death.
type process struct {
	*testing.T
	cmd     *exec.Cmd
	out     bytes.Buffer // to be read when done is closed
	done    chan struct{}
	err     error // of Wait, when done is closed
	control string
}

// start starts an agent.
func (m *machine) start() *process {
	m.Helper()
	p := &process{T: m.T, done: make(chan struct{}), control: m.control}
	p.cmd = exec.Command(os.Args[0], "agent", "--node-name", thisNode, "--kube-source", "files:"+m.manifests, "--vpp-api-socket", m.vpp,
		"--etcd", m.etcd, "--data-dir", m.data, "--control-socket", m.control, "--http-address", "127.0.0.1:0", "--healthz-bind-address", "",
		"--log-format", "text", "--log-level", "warn")
	p.cmd.Env = append(os.Environ(), asAgent+"=1")
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		m.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

// strike sends SIGKILL and does not wait.
func (p *process) strike() { _ = p.cmd.Process.Kill() }

// kill makes sure that the process is dead, and by SIGKILL only.
func (p *process) kill() {
	p.Helper()
	p.strike()
	<-p.done
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		p.Fatalf("the agent died by itself: %v\n%s", p.err, p.out.String())
	}
}

// stop ends the process as an init system does.
func (p *process) stop() {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Error(err)
	}
	<-p.done
	if p.err != nil {
		p.Errorf("stop: %v\n%s", p.err, p.out.String())
	}
}

// ready reports whether the agent is ready, with its answer.
func (p *process) ready() (bool, string) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", p.control)
		},
	}}
	answer, err := client.Get("http://agent/readyz")
	if err != nil {
		return false, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, err.Error()
	}
	return answer.StatusCode == http.StatusOK, string(text)
}

// live waits until the agent is ready. Until this agent listens, the control socket belongs to the
// previous agent and has no listener.
func (p *process) live() {
	p.Helper()
	deadline := time.After(patience)
	for {
		ok, said := p.ready()
		if ok {
			return
		}
		select {
		case <-p.done:
			p.Fatalf("the agent died by itself: %v\n%s", p.err, p.out.String())
		case <-deadline:
			p.strike()
			<-p.done
			p.Fatalf("not ready within %s: %s\n%s", patience, said, p.out.String())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// newMachine makes the directories.
func newMachine(t *testing.T, vpp, etcd string) *machine {
	t.Helper()
	return &machine{T: t, vpp: vpp, manifests: t.TempDir(), data: t.TempDir(), control: filepath.Join(filepath.Dir(vpp), "ctl"), etcd: etcd}
}
