package bootstrap

import (
	"fmt"
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
