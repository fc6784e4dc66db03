package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// Process is a process of a node.
type Process struct {
	*controlplane.Process // nsenter, which ends with it
}

// enter is the command line of a command in the namespaces of the node.
func (n *Node) enter(command ...string) []string {
	return append([]string{"nsenter", "-t", strconv.Itoa(n.pid), "-m", "-n", "-p", "-u", "--"}, command...)
}

// Spawn starts a process on the node; it ends with the node. Its output goes to a file of its name.
func (n *Node) Spawn(command ...string) *Process {
	n.t.Helper()
	line := n.enter(command...)
	return &Process{controlplane.SpawnAs(n.t, filepath.Join(n.dir, filepath.Base(command[0])+".log"), exec.Command(line[0], line[1:]...))}
}

// Do runs a command on the node and returns its output.
func (n *Node) Do(command ...string) string {
	n.t.Helper()
	out, err := n.Try(command...)
	if err != nil {
		n.t.Fatalf("%s: %s: %v\n%s", n.Name, strings.Join(command, " "), err, out)
	}
	return out
}

// Try is Do for a command that may fail.
func (n *Node) Try(command ...string) (string, error) {
	line := n.enter(command...)
	out, err := exec.Command(line[0], line[1:]...).CombinedOutput()
	return string(out), err
}

// Signal sends a signal to the process, not to nsenter.
func (p *Process) Signal(signal syscall.Signal) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", p.Pid()))
	if err != nil {
		return // it has ended
	}
	for child := range strings.FieldsSeq(string(children)) {
		if pid, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(pid, signal)
		}
	}
}

// Kill kills the process and waits for its end.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	p.Process.Kill()
}

// Find returns the ids (of the machine) of the processes in the network of the node, in its pods
// with hostNetwork too, whose command line begins with these words.
func (n *Node) Find(words ...string) (pids []int) {
	own, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", n.pid))
	if err != nil {
		n.t.Fatal(err)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		network, err := os.Readlink(process + "/ns/net")
		if err != nil || network != own {
			continue // ended, or elsewhere
		}
		line, _ := os.ReadFile(process + "/cmdline")
		if pid, err := strconv.Atoi(filepath.Base(process)); err == nil && strings.HasPrefix(string(line), strings.Join(words, "\x00")+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}
