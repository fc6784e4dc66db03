package node

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// initial is the name of the program as the first process of a node; its arguments are a directory
// for files and the name of the cgroup.
const initial = "troupe-test-node"

// sysctls are those that kubelet would change for the whole machine, with the values that it wants
// to read.
var sysctls = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// Init is the first process of a node if the program was started as one, and does not return then.
// TestMain calls it before anything else.
func Init() {
	if os.Args[0] != initial {
		return
	}
	err := syscall.Sethostname([]byte(os.Args[2])) // also that of pods in the network of the host
	if err == nil {
		err = prepare(os.Args[1])
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	signal.Ignore(syscall.SIGCHLD) // the kernel reaps
	fmt.Println("ready")
	select {}
}

// prepare makes the private mounts of a node. Files of its own are in dir.
func prepare(dir string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separate mounts: %w", err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		// for mounts that pods share with the node
		return fmt.Errorf("share mounts: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	values := filepath.Join(dir, "sysctl")
	for _, place := range []string{"/run", "/var/lib", "/var/log", "/dev/shm", "/etc/cni", "/opt/cni", values} {
		if err := os.MkdirAll(place, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", place, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", place, err)
		}
	}
	for name, value := range sysctls {
		file := filepath.Join(values, filepath.Base(name))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return err
		}
		if err := syscall.Mount(file, "/proc/sys/"+name, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover sysctl %s: %w", name, err)
		}
	}
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("set lo up: %w: %s", err, out)
	}
	return nil
}
