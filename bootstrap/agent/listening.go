package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/troupe-vpp/troupe/vpp/rule"
)

// portKept is how long a port stays reserved after its process has closed it. A daemon gets its port
// back when it restarts within this time.
const portKept = 10 * time.Minute

// States of sockets in /proc/net.
const (
	stateListen  = 0x0A // TCP
	stateUnbound = 0x07 // UDP without a peer
)

// listeningPorts reads the ports of this node on which processes listen, so that a service cannot
// take such a port from the node. It reads the kernel's tables in /proc/net in the network
// namespace of the agent; in a DaemonSet with hostNetwork this is the namespace of the node. It is
// safe from any goroutine.
type listeningPorts struct {
	proc string
	log  *slog.Logger

	mu     sync.Mutex
	seen   map[rule.Port]time.Time
	failed bool
}

// newListening returns a reader of the tables below a directory, which is /proc except in tests.
func newListening(proc string, log *slog.Logger) *listeningPorts {
	return &listeningPorts{proc: proc, log: log, seen: map[rule.Port]time.Time{}}
}

// Read returns the ports, ordered, as "number/PROTO". A process listens on each of them at an
// address other than loopback, or did so within portKept. Read leaves out UDP ports that the kernel
// gives to clients (ip_local_port_range). While it cannot read the tables, it keeps all ports and
// logs this once.
func (p *listeningPorts) Read(now time.Time) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.read(now)
	if err == nil {
		maps.DeleteFunc(p.seen, func(_ rule.Port, last time.Time) bool { return now.Sub(last) > portKept })
	} else if !p.failed {
		p.log.Warn("cannot read the ports on which the node listens, services may claim new ones", "error", err)
	}
	p.failed = err != nil
	ports := slices.SortedFunc(maps.Keys(p.seen), func(a, b rule.Port) int {
		return 256*(int(a.Number)-int(b.Number)) + int(a.Proto) - int(b.Proto)
	})
	texts := make([]string, len(ports))
	for i, one := range ports {
		texts[i] = one.String()
	}
	return texts
}

func (p *listeningPorts) read(now time.Time) error {
	low, high, err := p.clientPorts()
	if err != nil {
		return err
	}
	for _, table := range []struct {
		name  string
		proto uint8
		state uint64
	}{{"tcp", rule.TCP, stateListen}, {"tcp6", rule.TCP, stateListen}, {"udp", rule.UDP, stateUnbound}, {"udp6", rule.UDP, stateUnbound}} {
		text, err := os.ReadFile(p.proc + "/net/" + table.name)
		if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(table.name, "6") {
			continue // a kernel without IPv6
		}
		if err != nil {
			return fmt.Errorf("read the ports on which the node listens: %w", err)
		}
		for port := range listeners(text, table.state) {
			if table.proto != rule.UDP || port < low || port > high {
				p.seen[rule.Port{Number: port, Proto: table.proto}] = now
			}
		}
	}
	return nil
}

// clientPorts returns the range from which the kernel gives clients their ports.
func (p *listeningPorts) clientPorts() (low, high uint16, err error) {
	text, err := os.ReadFile(p.proc + "/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(text), &low, &high)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the range of client ports: %w", err)
	}
	return low, high, nil
}

// listeners returns the ports of a table's sockets in a state, except ports at loopback addresses.
// It skips unreadable lines, such as the title.
func listeners(table []byte, state uint64) map[uint16]bool {
	ports := map[uint16]bool{}
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text()) // "0: 0100007F:1F90 00000000:0000 0A ..."
		if len(fields) < 4 {
			continue
		}
		host, number, _ := strings.Cut(fields[1], ":")
		addr, known := kernelAddress(host)
		port, err := strconv.ParseUint(number, 16, 16)
		is, bad := strconv.ParseUint(fields[3], 16, 8)
		if known && err == nil && bad == nil && is == state && port > 0 && !addr.IsLoopback() {
			ports[uint16(port)] = true
		}
	}
	return ports
}

// kernelAddress decodes an address as the kernel prints it: words of 32 bits in the byte order of
// the machine. Troupe runs only on little-endian machines.
func kernelAddress(text string) (addr netip.Addr, ok bool) {
	var b []byte
	for ; len(text) >= 8; text = text[8:] {
		word, err := strconv.ParseUint(text[:8], 16, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		b = append(b, byte(word), byte(word>>8), byte(word>>16), byte(word>>24))
	}
	addr, ok = netip.AddrFromSlice(b)
	return addr.Unmap(), ok && text == ""
}
