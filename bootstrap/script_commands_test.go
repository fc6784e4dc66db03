package bootstrap

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/troupe-vpp/troupe/cluster/etcd"
	"github.com/troupe-vpp/troupe/cluster/etcd/etcdtest"
)

// scriptCommands are what scripts have besides the commands of testscript. None of them sleeps:
// each waits for something, at most for patience.
//
//	start NAME ARGS...          runs `troupe ARGS...` in the background; its output goes to
//	                            NAME.out and NAME.err
//	signal NAME SIGNAL          sends TERM, INT, KILL or USR1
//	ended NAME CODE             waits for the end of NAME and expects this exit code; -1 = killed
//	wait-ready ADDR             waits until /readyz of the agent at ADDR (host:port or the path of
//	                            a socket) is 200
//	wait-unready ADDR           waits until it is not
//	wait-http PATTERN ADDR PATH waits until the answer matches, whatever its status is
//	wait-for PATTERN ARGS...    runs `troupe ARGS...` until its output matches the regular
//	                            expression
//	wait-file PATTERN FILE      waits until the file matches
//	http ADDR METHOD PATH CODE  calls an agent; the answer is the standard output
//	listen-on VAR NAME          sets VAR to the address on which agent NAME serves HTTP, as it
//	                            says in its log
//	busy VAR                    listens on a port until the script ends and sets VAR to its
//	                            address
//	etcd VAR                    runs an etcd until stop-etcd or the end of the script and sets VAR
//	                            to its URL
//	stop-etcd VAR               stops that etcd
//	subst VALUE FILE            puts VALUE where the file says ADDRESS
//	unchanged FILE              expects that the output of a simulator counts as many changes at
//	                            its end as it did when it was asked
//	shows FAULT SOCKET PATH TEXT
//	                            expects a text on a page of the agent; with -screens it leaves a
//	                            picture
//	none PATTERN                expects that no file has such a name
//	replace FILE OLD NEW        replaces text that must be there, the way editors save: by
//	                            renaming a new file over the old one
func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	plain := func(usage string, want int, fn func(ts *testscript.TestScript, args []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < want || want >= 0 && !strings.HasSuffix(usage, "...") && len(args) != want {
				ts.Fatalf("usage: %s", usage)
			}
			fn(ts, args)
		}
	}
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"start":        plain("start NAME ARGS...", 2, startProcess),
		"signal":       plain("signal NAME SIGNAL", 2, signalProcess),
		"ended":        plain("ended NAME CODE", 2, endedProcess),
		"wait-ready":   plain("wait-ready ADDR", 1, func(ts *testscript.TestScript, args []string) { waitReady(ts, args[0], http.StatusOK) }),
		"wait-unready": plain("wait-unready ADDR", 1, func(ts *testscript.TestScript, args []string) { waitReady(ts, args[0], http.StatusServiceUnavailable) }),
		"wait-http":    plain("wait-http PATTERN ADDR PATH", 3, waitHTTP),
		"wait-for":     plain("wait-for PATTERN ARGS...", 2, waitFor),
		"wait-file":    plain("wait-file PATTERN FILE", 2, waitFile),
		"http":         plain("http ADDR METHOD PATH CODE", 4, callHTTP),
		"listen-on":    plain("listen-on VAR NAME", 2, listenOn),
		"busy":         plain("busy VAR", 1, busyPort),
		"etcd":         plain("etcd VAR", 1, runEtcd),
		"stop-etcd":    plain("stop-etcd VAR", 1, stopEtcd),
		"subst":        plain("subst VALUE FILE", 2, func(ts *testscript.TestScript, args []string) { replaceText(ts, []string{args[1], "ADDRESS", args[0]}) }),
		"unchanged":    plain("unchanged FILE", 1, unchanged),
		"none": plain("none PATTERN", 1, func(ts *testscript.TestScript, args []string) {
			if names, err := filepath.Glob(ts.MkAbs(args[0])); err != nil || len(names) > 0 {
				ts.Fatalf("left behind: %v %v", names, err)
			}
		}),
		"shows": plain("shows FAULT SOCKET PATH TEXT", 4, func(ts *testscript.TestScript, args []string) {
			ts.Check(shows(args[0], pageAt("unix", ts.MkAbs(args[1])), args[2], args[3]))
		}),
		"replace": plain("replace FILE OLD NEW", 3, replaceText),
	}
}

// processesKey finds the processes of a script.
type processesKey struct{}

// processes are the processes that a script has started.
type processes struct {
	byName map[string]*process
	etcds  map[string]*etcd.Embedded
}

// process is one run of the program.
type process struct {
	cmd  *exec.Cmd
	done chan error
}

// processOf finds a process of the script.
func processOf(ts *testscript.TestScript, name string) *process {
	p := ts.Value(processesKey{}).(*processes).byName[name]
	if p == nil {
		ts.Fatalf("no process %s", name)
	}
	return p
}

// eventually tries until it is true; last describes the last attempt.
func eventually(ts *testscript.TestScript, what string, try func() (ok bool, last string)) {
	deadline := time.Now().Add(patience)
	for {
		ok, last := try()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s: not within %s; at last:\n%s", what, patience, last)
		}
		time.Sleep(10 * time.Millisecond) // the interval of attempts, not a guess at the duration
	}
}

// program makes a command that runs the program in the directory and environment of the script.
func program(ts *testscript.TestScript, args []string) *exec.Cmd {
	var path string
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if candidate := filepath.Join(dir, "troupe"); path == "" && isExecutable(candidate) {
			path = candidate
		}
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME=/no-home", "TMPDIR="+ts.Getenv("TMPDIR"))
	return cmd
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func startProcess(ts *testscript.TestScript, args []string) {
	all, name := ts.Value(processesKey{}).(*processes), args[0]
	if old := all.byName[name]; old != nil {
		ts.Fatalf("process %s is there already", name)
	}
	cmd := program(ts, args[1:])
	var files []io.Closer
	for suffix, to := range map[string]*io.Writer{".out": &cmd.Stdout, ".err": &cmd.Stderr} {
		f, err := os.Create(ts.MkAbs(name + suffix))
		ts.Check(err)
		*to = f
		files = append(files, f)
	}
	ts.Check(cmd.Start())
	for _, f := range files {
		ts.Check(f.Close())
	}
	p := &process{cmd: cmd, done: make(chan error, 1)}
	all.byName[name] = p
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.done <- cmd.Wait()
	}()
	ts.Defer(func() {
		_ = cmd.Process.Kill() // most often it is over already
		<-ended
	})
}

func signalProcess(ts *testscript.TestScript, args []string) {
	known := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "KILL": os.Kill, "USR1": syscall.SIGUSR1}
	if known[args[1]] == nil {
		ts.Fatalf("unknown signal %s", args[1])
	}
	ts.Check(processOf(ts, args[0]).cmd.Process.Signal(known[args[1]]))
}

func endedProcess(ts *testscript.TestScript, args []string) {
	p := processOf(ts, args[0])
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-p.done:
	case <-timeout.C:
		ts.Fatalf("%s still runs after %s", args[0], patience)
	}
	delete(ts.Value(processesKey{}).(*processes).byName, args[0])
	if got := fmt.Sprint(p.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("%s ended with %s, want %s:\n%s%s", args[0], got, args[1], ts.ReadFile(args[0]+".out"), ts.ReadFile(args[0]+".err"))
	}
}

// call asks the agent at a TCP address or at the path of a socket, over a connection of its own.
func call(ts *testscript.TestScript, address, method, path string) (status int, body string, err error) {
	network := "tcp"
	if !strings.Contains(address, ":") {
		network, address = "unix", ts.MkAbs(address)
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	request, err := http.NewRequest(method, "http://localhost"+path, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

func waitReady(ts *testscript.TestScript, address string, want int) {
	eventually(ts, fmt.Sprintf("readyz of %s is %d", address, want), func() (bool, string) {
		status, body, err := call(ts, address, http.MethodGet, "/readyz?verbose")
		return err == nil && status == want, fmt.Sprintf("%d %v\n%s", status, err, body)
	})
}

func waitHTTP(ts *testscript.TestScript, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	eventually(ts, args[1]+args[2]+" answers "+args[0], func() (bool, string) {
		status, body, err := call(ts, args[1], http.MethodGet, args[2])
		return err == nil && pattern.MatchString(body), fmt.Sprintf("%d %v\n%s", status, err, body)
	})
}

func waitFor(ts *testscript.TestScript, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	eventually(ts, "troupe "+strings.Join(args[1:], " ")+" prints "+args[0], func() (bool, string) {
		var out bytes.Buffer
		cmd := program(ts, args[1:])
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			ts.Check(err)
		}
		return pattern.Match(out.Bytes()), out.String()
	})
}

func waitFile(ts *testscript.TestScript, args []string) {
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	eventually(ts, args[1]+" holds "+args[0], func() (bool, string) {
		content, err := os.ReadFile(ts.MkAbs(args[1]))
		return err == nil && pattern.Match(content), string(content)
	})
}

func callHTTP(ts *testscript.TestScript, args []string) {
	status, body, err := call(ts, args[0], args[1], args[2])
	ts.Check(err)
	if fmt.Sprint(status) != args[3] {
		ts.Fatalf("%s %s: %d, want %s\n%s", args[1], args[2], status, args[3], body)
	}
	_, _ = io.WriteString(ts.Stdout(), body)
}

func listenOn(ts *testscript.TestScript, args []string) {
	pattern := regexp.MustCompile(`"msg":"serving HTTP","address":"([^"]+)"`)
	eventually(ts, args[1]+" says where it serves", func() (bool, string) {
		content, err := os.ReadFile(ts.MkAbs(args[1] + ".err"))
		found := pattern.FindSubmatch(content)
		if err != nil || found == nil {
			return false, string(content)
		}
		ts.Setenv(args[0], string(found[1]))
		return true, ""
	})
}

func busyPort(ts *testscript.TestScript, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv(args[0], l.Addr().String())
}

func runEtcd(ts *testscript.TestScript, args []string) {
	etcd, err := etcdtest.StartEmbedded(etcd.EmbeddedConfig{Dir: ts.MkAbs(".etcd-" + args[0]), NoSync: true, Listen: "127.0.0.1:0"})
	ts.Check(err)
	ts.Defer(func() { _ = etcd.Close() })
	ts.Value(processesKey{}).(*processes).etcds[args[0]] = etcd
	ts.Setenv(args[0], etcd.Client().Endpoints()[0])
}

func stopEtcd(ts *testscript.TestScript, args []string) {
	etcd := ts.Value(processesKey{}).(*processes).etcds[args[0]]
	if etcd == nil {
		ts.Fatalf("no etcd %s", args[0])
	}
	ts.Check(etcd.Close())
}

func unchanged(ts *testscript.TestScript, args []string) {
	counts := regexp.MustCompile(`(?m)^mutating (\d+)$`).FindAllStringSubmatch(ts.ReadFile(args[0]), -1)
	if len(counts) != 2 || counts[0][1] != counts[1][1] || counts[0][1] == "0" {
		ts.Fatalf("want the same number twice, and not 0: %v", counts)
	}
}

func replaceText(ts *testscript.TestScript, args []string) {
	content := ts.ReadFile(args[0])
	if !strings.Contains(content, args[1]) {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.WriteFile(path+".new", []byte(strings.ReplaceAll(content, args[1], args[2])), 0o600))
	ts.Check(os.Rename(path+".new", path))
}
