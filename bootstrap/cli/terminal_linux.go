package cli

import (
	"os"
	"syscall"
	"unsafe"
)

// widthOf returns the width of a terminal, 0 if it has no width, and whether the file is a
// terminal.
func widthOf(f *os.File) (width int, terminal bool) {
	var size struct{ rows, columns, x, y uint16 }
	connection, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	failed := syscall.Errno(0)
	err = connection.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
	})
	return int(size.columns), err == nil && failed == 0
}
