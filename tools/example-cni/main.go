package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

func main() {
	if os.Getenv("CNI_COMMAND") != "" {
		os.Exit(runPlugin(os.Getenv, os.Stdin, os.Stdout))
	}
	err := fmt.Errorf("usage: example-cni node|vpp ARGUMENTS")
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "node":
			err = runNode(os.Args[2:])
		case "vpp":
			err = becomeVPP(os.Args[2:])
		}
	}
	fmt.Fprintln(os.Stderr, "example-cni:", err)
	os.Exit(1)
}

// becomeVPP replaces the process by VPP with these arguments. A VPP that was killed leaves shared
// memory with its locks, for which the next one would wait.
func becomeVPP(arguments []string) error {
	left, err := filepath.Glob("/dev/shm/*")
	if err != nil {
		return err
	}
	for _, file := range left {
		if err := os.RemoveAll(file); err != nil {
			return fmt.Errorf("remove shared memory: %w", err)
		}
	}
	program, err := exec.LookPath("vpp")
	if err != nil {
		return fmt.Errorf("find VPP: %w", err)
	}
	return fmt.Errorf("start %s: %w", program, syscall.Exec(program, append([]string{"vpp"}, arguments...), os.Environ()))
}
