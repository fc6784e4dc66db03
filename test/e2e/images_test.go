package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/test/node"
)

// Names by which the tests of Kubernetes ask for images.
const (
	agnhost    = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	busybox    = "registry.k8s.io/e2e-test-images/busybox:1.37.0-1"
	regression = "registry.k8s.io/e2e-test-images/regression-issue-74839:1.4"
	pause      = "registry.k8s.io/pause:3.10.2"
	coreDNS    = "troupe.test/coredns:1"
)

// tools are the commands that the tests run in pods, by the command of this machine.
var tools = map[string]string{
	"sh": "dash", "nc": "nc.openbsd", "bash": "", "cat": "", "curl": "", "date": "", "dig": "", "echo": "", "env": "", "hostname": "",
	"grep": "", "ip": "", "ls": "", "mkdir": "", "nslookup": "", "seq": "", "sleep": "", "ss": "", "timeout": "", "touch": "", "wget": "",
}

// missingTools says which commands the machine lacks, or "".
func missingTools() string {
	for name, command := range tools {
		if command == "" {
			command = name
		}
		if _, err := exec.LookPath(command); err != nil {
			return "the images of the pods need " + command + ", of the packages bind9-dnsutils, curl, dash, netcat-openbsd, wget"
		}
	}
	if _, err := exec.LookPath("nft"); err != nil && *beside {
		return "kube-proxy needs the program nft"
	}
	return ""
}

var library = regexp.MustCompile(`(?m)(/\S+) \(0x[0-9a-f]+\)$`)

// images makes the images of programs that are built and of commands of this machine, and returns
// the archives.
func images(t *testing.T, suite, dns string) (archives []string) {
	t.Helper()
	read := func(file string) []byte {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	files := map[string][]byte{
		"agnhost": read(filepath.Join(suite, "agnhost")), "agnhost-2": read(filepath.Join(suite, "agnhost")), "tmp/.keep": nil, "uploads/.keep": nil,
		"etc/passwd": []byte("root:x:0:0:root:/root:/bin/sh\n"), "etc/group": []byte("root:x:0:\n"),
		"etc/nsswitch.conf": []byte("hosts: files dns\n"), "etc/wgetrc": []byte("tries = 1\n"),
	}
	list := exec.Command("go", "-C", "suite", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	sources, err := list.Output()
	if err != nil {
		t.Fatalf("find sources of Kubernetes: %v", err)
	}
	for _, name := range []string{"localhost.crt", "localhost.key"} { // with which agnhost serves TLS
		files[name] = read(filepath.Join(strings.TrimSpace(string(sources)), "test", "images", "agnhost", "porter", name))
	}
	for name, command := range tools {
		if command == "" {
			command = name
		}
		file, err := exec.LookPath(command)
		if err != nil {
			t.Fatal(err)
		}
		files["bin/"+name] = read(file)
		out, _ := exec.Command("ldd", file).CombinedOutput() // fails for a program without libraries
		for _, line := range library.FindAllStringSubmatch(string(out), -1) {
			files[strings.TrimPrefix(line[1], "/")] = read(line[1])
		}
	}
	dir := t.TempDir()
	write := func(archive, name string, files map[string][]byte, program string, arguments ...string) {
		archive = filepath.Join(dir, archive)
		if err := node.WriteImage(archive, name, files, program, arguments...); err != nil {
			t.Fatal(err)
		}
		archives = append(archives, archive)
	}
	write("agnhost.tar", agnhost, files, "/agnhost", "pause")
	write("regression.tar", regression, map[string][]byte{"regression": read(filepath.Join(suite, "regression-issue-74839"))}, "/regression")
	write("coredns.tar", coreDNS, map[string][]byte{"coredns": read(filepath.Join(dns, "coredns"))}, "/coredns")
	return archives
}
