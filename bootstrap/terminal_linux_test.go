package bootstrap

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/troupe-vpp/troupe/bootstrap/api/apitest"
	"github.com/troupe-vpp/troupe/bootstrap/cli"
)

// terminalPair opens a pseudo-terminal of a width: what is written into the one end is read from
// the other.
func terminalPair(t *testing.T, width uint16) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	control := func(request, argument uintptr) {
		t.Helper()
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, argument); failed != 0 {
			t.Fatal(failed)
		}
	}
	var number, unlock int32
	control(syscall.TIOCGPTN, uintptr(unsafe.Pointer(&number)))
	control(syscall.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock)))
	size := struct{ rows, columns, x, y uint16 }{rows: 24, columns: width}
	control(syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size)))
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return screen, program
}

// TestOnATerminal: a command on a terminal fits its width and has colors, unless NO_COLOR is set or
// -o wide is given; a file has neither.
func TestOnATerminal(t *testing.T) {
	a := apitest.Start(t, apitest.New(1), nil)
	read := func(args ...string) string {
		t.Helper()
		screen, program := terminalPair(t, 60)
		var errs strings.Builder
		if code := execute(t.Context(), append(args, "--address", a.Address), cli.Streams{Out: program, Errs: &errs}); code != exitOK {
			t.Fatal(errs.String())
		}
		if _, err := program.WriteString("end"); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for !strings.HasSuffix(got.String(), "end") {
			buffer := make([]byte, 4096)
			n, err := screen.Read(buffer)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(buffer[:n])
		}
		return strings.ReplaceAll(strings.TrimSuffix(got.String(), "end"), "\r\n", "\n")
	}
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	widest := func(text string) (most int) {
		for line := range strings.Lines(strings.NewReplacer("\x1b[32m", "", "\x1b[0m", "").Replace(text)) {
			most = max(most, len(strings.TrimSuffix(line, "\n")))
		}
		return most
	}
	if got := read("actors", "show", "agent/world"); widest(got) > 60 {
		t.Errorf("%d wide:\n%s", widest(got), got)
	}
	if got := read("get", "service", "shop/service-000"); !strings.Contains(got, "\x1b[32min-sync\x1b[0m") {
		t.Errorf("%q", got)
	}
	if got := read("get", "services", "-o", "wide"); widest(got) < 100 {
		t.Errorf("%d wide:\n%s", widest(got), got)
	}
	t.Setenv("NO_COLOR", "1")
	if got := read("get", "service", "shop/service-000"); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	if r := lookAt(a, "get services"); strings.Contains(r.out, "\x1b") || widest(r.out) < 100 {
		t.Errorf("%q", r.out)
	}
}

// TestHostileAgentOnATerminal: whatever an agent or the path of an archive says, no command lets it
// control the terminal, on standard output and on standard error.
func TestHostileAgentOnATerminal(t *testing.T) {
	const clear, escaped = "\x1b[2J\x1b]0;owned\x07\u009b2J", `\u001b[2J\u001b]0;owned\u0007\u009b2J`
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/trace":
			fmt.Fprintf(w, "data: {\"seq\":1,\"text\":\"%s\",\"error\":\"%[1]s\",\"operations\":[\"%[1]s\"]}\r\n\n", escaped)
		case "/api/v1/services":
			fmt.Fprintf(w, `{"items":[{"key":"%s","error":"%[1]s"}],"total":1}`, escaped)
		default:
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, `{"error":"%s"}`, escaped)
		}
	}))
	defer agent.Close()
	address := strings.TrimPrefix(agent.URL, "http://")
	for _, command := range []string{
		"get services", "get services -o json", "get services -o yaml", "get nodes", "trace --follow=false", "trace --follow=false -o json", "trace --follow=false -o yaml",
		"status", "explain shop/web", "__complete get service ", "look " + clear,
	} {
		args := strings.Split(command, " ")
		if args[0] != "look" {
			args = append(args, "--address", address)
		}
		r := troupe("", args...)
		if text := r.out + r.errs; text == "" || strings.ContainsAny(text, "\x1b\x07\r\u009b") {
			t.Errorf("%q: %q", command, text)
		}
	}
}
