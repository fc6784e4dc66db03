package realvpp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"unsafe"
)

// envWorkers is the number of workers of every VPP of a test run.
const envWorkers = "TROUPE_VPP_WORKERS"

// Workers is the number of workers that the environment asks for.
func Workers(t testing.TB) int {
	text := os.Getenv(envWorkers)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 15 {
		t.Fatalf("%s is %q, want a number of workers up to 15", envWorkers, text)
	}
	return n
}

// SetWorkers gives VPP a number of workers at its next start. It needs no core for each, see
// command.
func (p *Process) SetWorkers(n int) { p.workers = n }

// envBecome makes a test binary VPP instead of running tests. Its value is the file that takes the
// place of the list of CPUs.
const envBecome = "TROUPE_TEST_BECOME_VPP"

// cpuList is what VPP reads to know the cores.
const cpuList = "/sys/devices/system/cpu/online"

// command is the command that starts VPP. VPP pins each worker to a core of its own and does not
// start without; so for workers the test binary starts once more in a mount namespace with a longer
// list of CPUs, lets the kernel ignore the pinning, and executes VPP.
func (p *Process) command(t testing.TB, config string) *exec.Cmd {
	t.Helper()
	if p.workers == 0 {
		command := exec.Command(p.binary, "-c", config)
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return command
	}
	list := filepath.Join(p.dir, "cpus")
	if err := os.WriteFile(list, []byte("0-15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, p.binary, "-c", config)
	command.Env = append(os.Environ(), envBecome+"="+list)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNS}
	return command
}

func init() {
	if list := os.Getenv(envBecome); list != "" {
		fmt.Fprintln(os.Stderr, become(list))
		os.Exit(1)
	}
}

// Of the kernel's headers, which package syscall lacks: prctl(PR_SET_NO_NEW_PRIVS), and seccomp.
const (
	noNewPrivileges = 38
	filterMode      = 2
	// with the error in the low bits; 0 = the call seems to succeed, and does nothing
	answerErrno = 0x00050000
	answerAllow = 0x7fff0000
)

// become executes VPP in the place of this process.
func become(list string) error {
	runtime.LockOSThread() // filters belong to threads
	err := errors.Join(
		os.Unsetenv(envBecome), syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""), syscall.Mount(list, cpuList, "", syscall.MS_BIND, ""),
		// VPP ends when a worker gets no core for a second
		syscall.Setpriority(syscall.PRIO_PROCESS, 0, -20),
	)
	if err != nil {
		return fmt.Errorf("workers need the rights of root: %w", err)
	}
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS}, // the number of the system call
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: syscall.SYS_SCHED_SETAFFINITY, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: answerErrno},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: answerAllow},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, noNewPrivileges, 1, 0); errno != 0 {
		return fmt.Errorf("give up privileges: %w", errno)
	}
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_SECCOMP, filterMode, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("filter of system calls: %w", errno)
	}
	return fmt.Errorf("execute VPP: %w", syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
}
