package cli

import (
	"io"
	"os"
)

// ScreenOf is the screen of a stream. Only a terminal limits the width of tables and has colors,
// unless NO_COLOR is set (https://no-color.org) or the terminal is dumb.
func ScreenOf(to io.Writer) Screen {
	if f, ok := to.(*Framed); ok {
		return f.Screen
	}
	file, ok := raw(to).(*os.File)
	if !ok {
		return Screen{}
	}
	width, terminal := widthOf(file)
	if !terminal {
		return Screen{}
	}
	return Screen{Width: width, color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// Framed is a stream with a screen that replaces its own.
type Framed struct {
	io.Writer
	Screen Screen
}
