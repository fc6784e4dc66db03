package controlplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Patience is how long a wait may take on a loaded machine before the test fails.
const Patience = 90 * time.Second

// Process is a process of a test, with its output in a file.
type Process struct {
	name string
	log  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// Spawn starts a process with its output in dir. It is killed when the test ends; its last output
// is shown where the test has failed.
func Spawn(t testing.TB, dir, file string, arguments ...string) *Process {
	t.Helper()
	return SpawnAs(t, filepath.Join(dir, filepath.Base(file)+".log"), exec.Command(file, arguments...))
}

// SpawnAs is Spawn of a command with its output in the file, which may have output of an earlier
// process.
func SpawnAs(t testing.TB, log string, cmd *exec.Cmd) *Process {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(log), ".log")
	p := &Process{name: name, log: log, cmd: cmd, done: make(chan struct{})}
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatalf("open log of %s: %v", name, err)
	}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if p.cmd.SysProcAttr == nil {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	p.cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	err = p.cmd.Start()
	_ = out.Close()
	if err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.Signal(syscall.SIGCONT)
		p.Kill()
		if t.Failed() {
			t.Logf("%s said at the end:\n%s", name, p.Tail())
		}
	})
	return p
}

// Signal sends a signal; a process that has ended does not get it.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// PID is the ID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Kill kills the process and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Pid is the id of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Output is everything that the process has written.
func (p *Process) Output() string {
	out, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// Tail is the end of the output.
func (p *Process) Tail() string {
	out := p.Output()
	return out[max(0, len(out)-3000):]
}

// Eventually polls until check returns "", and fails with what it returned last.
func Eventually(t testing.TB, what string, check func() string) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for {
		said := check()
		if said == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %s", what, Patience, said)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
