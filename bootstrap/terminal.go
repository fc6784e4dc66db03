package bootstrap

import (
	"io"
	"os"
)

// screenOf is the screen of a stream. Only a terminal limits the width of tables and has colors,
// unless NO_COLOR is set (https://no-color.org) or the terminal is dumb.
func screenOf(to io.Writer) screen {
	if f, ok := to.(*framed); ok {
		return f.screen
	}
	file, ok := to.(*os.File)
	if !ok {
		return screen{}
	}
	width, terminal := widthOf(file)
	if !terminal {
		return screen{}
	}
	return screen{width: width, color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// framed is a stream with another screen than its own.
type framed struct {
	io.Writer
	screen screen
}
