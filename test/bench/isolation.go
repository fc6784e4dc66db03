package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/troupe-vpp/troupe/test/build"
)

// agentVariable is the environment variable with the agent, where the command runs in a network
// namespace of its own: nothing can be downloaded there.
const agentVariable = "TROUPE_BENCH_AGENT"

// ownNetwork gives a process an own network namespace.
func ownNetwork() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
}

// noRules returns why there can be no rules of nftables in a network namespace.
func noRules() error {
	cmd := exec.Command("nft", "list", "tables")
	cmd.SysProcAttr = ownNetwork()
	return cmd.Run()
}

// isolate keeps the rules of kube-proxy apart from those of this machine. It builds everything, and
// runs the command anew in a network namespace of its own. In there, it makes the namespace ready.
// done reports whether the command has run.
func (p *programs) isolate(
	ctx context.Context, o options, arguments []string, out, progress io.Writer,
) (done bool, err error) {
	inside := os.Getenv(agentVariable) != ""
	if !inside {
		if err := noRules(); err != nil {
			fmt.Fprintf(progress, "kube-proxy is not measured: no rules of nftables in a network namespace: %v\n", err)
			return false, nil
		}
	}
	say := func(format string, args ...any) { fmt.Fprintf(progress, format+"\n", args...) }
	dir, err := build.KubeProxy(ctx, say)
	if err != nil {
		return false, err
	}
	if inside {
		p.kubeProxy = filepath.Join(dir, "kube-proxy")
		return false, loopbackUp()
	}
	if o.source == sourceAPI {
		if _, err := build.ControlPlane(ctx, say); err != nil {
			return false, err
		}
	}
	cmd := exec.Command("/proc/self/exe", arguments...)
	cmd.Env = append(os.Environ(), agentVariable+"="+p.agent)
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, progress, ownNetwork()
	if err := cmd.Run(); err != nil {
		return true, fmt.Errorf("run in a network namespace: %w", err)
	}
	return true, nil
}

// loopbackUp makes loopback of a new network namespace usable.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open socket: %w", err)
	}
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("name loopback: %w", err)
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	return nil
}

// commits are the kernel's notifications of transactions of nftables, whatever program makes them.
type commits struct{ socket int }

// newCommits begins to receive notifications.
func newCommits() (c commits, err error) {
	const buffer = 16 << 20 // bytes
	if c.socket, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER); err != nil {
		return c, fmt.Errorf("open socket of nftables: %w", err)
	}
	if err = unix.Bind(c.socket, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: 1 << (unix.NFNLGRP_NFTABLES - 1)}); err == nil {
		err = unix.SetsockoptInt(c.socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(c.socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(patience / time.Second)})
	}
	if err != nil {
		c.close()
		return c, fmt.Errorf("receive notifications of nftables: %w", err)
	}
	return c, nil
}

// close ends the notifications.
func (c commits) close() { _ = unix.Close(c.socket) }

// with waits for the end of a transaction that has the address.
func (c commits) with(address string) (time.Time, error) {
	const size = 1 << 16
	datagram, there := make([]byte, size), false
	for {
		n, _, err := unix.Recvfrom(c.socket, datagram, 0)
		if err == unix.EINTR {
			continue
		}
		at := time.Now()
		if err != nil {
			return at, fmt.Errorf("wait for rules with endpoint %s: %w", address, err)
		}
		messages, err := syscall.ParseNetlinkMessage(datagram[:n])
		if err != nil {
			return at, fmt.Errorf("decode notification of nftables: %w", err)
		}
		for _, m := range messages {
			there = there || bytes.Contains(m.Data, net.ParseIP(address).To4())
			if there && m.Header.Type == unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWGEN {
				return at, nil
			}
		}
	}
}
