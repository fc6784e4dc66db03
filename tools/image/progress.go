package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"sync/atomic"
	"time"
)

// progress prints the state of a build on one line, now and then.
type progress struct {
	to    io.Writer
	every time.Duration
}

// run runs a build that prints each package which it compiles (go build -v), and returns its output
// when it fails.
func (p progress) run(cmd *exec.Cmd, what string) error {
	begun := time.Now()
	said := &counted{}
	cmd.Stdout, cmd.Stderr = said, said
	fmt.Fprintf(p.to, "%s: building; minutes where Go's cache is empty\n", what)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	ticks := time.NewTicker(p.every)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
			fmt.Fprintf(p.to, "%s: %d packages compiled in %s\n", what, said.lines.Load(), time.Since(begun).Round(time.Second))
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%w\n%s", err, said.text.Bytes())
			}
			fmt.Fprintf(p.to, "%s: built in %s\n", what, time.Since(begun).Round(time.Second))
			return nil
		}
	}
}

// counted keeps the written text and counts its lines.
type counted struct {
	text  bytes.Buffer
	lines atomic.Int64
}

// Write satisfies io.Writer.
func (c *counted) Write(text []byte) (int, error) {
	c.lines.Add(int64(bytes.Count(text, []byte{'\n'})))
	return c.text.Write(text)
}
