package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// The addresses of a pod CIDR are counted from 0. The last two belong to the broadcast and to
// Troupe, which replaces addresses of clients by the last usable one.
const (
	gatewayNumber = 1 // of VPP
	hostNumber    = 2
	firstPod      = 3
	keptAtEnd     = 2
)

// errFull means that all addresses are in use.
var errFull = errors.New("no free address")

// attachment is an interface of a pod. Its file is written before VPP has the interface and removed
// after VPP has lost it, so that the node process can give a new VPP each interface again.
type attachment struct {
	Link      string       `json:"link"` // end of the veth on the host, derived from the pod
	Addresses []netip.Addr `json:"addresses"`
}

// damaged reports whether the file of the attachment cannot be read: VPP knows its addresses.
func (a attachment) damaged() bool { return len(a.Addresses) == 0 }

// linkOf is the name of a pod's link on the host: at most 15 characters.
func linkOf(container, device string) string {
	return fmt.Sprintf("pod%.6x", sha256.Sum256([]byte(container+"/"+device)))
}

// macOf is the address of the end of a link that is not VPP's.
func macOf(link string) [6]byte {
	sum := sha256.Sum256([]byte(link))
	return [6]byte{2, 0xca, sum[0], sum[1], sum[2], sum[3]}
}

// store keeps the attachments of a node as files in a directory.
type store string

// lock keeps other processes out until unlock is called: one at a time changes VPP and the store.
func (s store) lock() (unlock func(), err error) {
	if err := os.MkdirAll(string(s), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(string(s), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return func() { _ = file.Close() }, nil
}

// list returns all attachments by their links. A damaged one has its link only: the other pods do
// not depend on it.
func (s store) list() (map[string]attachment, error) {
	files, err := filepath.Glob(filepath.Join(string(s), "*.json"))
	if err != nil {
		return nil, err
	}
	all := map[string]attachment{}
	for _, file := range files {
		var a attachment
		link := strings.TrimSuffix(filepath.Base(file), ".json")
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read attachment %s: %w", file, err)
		}
		if json.Unmarshal(content, &a) != nil || a.Link != link {
			a = attachment{Link: link}
		}
		all[link] = a
	}
	return all, nil
}

// add gives a link an address of each network and keeps the attachment. An address that was freed
// is used again only after all others: peers may still have connections to it. held returns the
// addresses of pods that VPP knows, where attachments are damaged.
func (s store) add(link string, networks []netip.Prefix, held func() (map[netip.Addr]string, error)) (attachment, error) {
	all, err := s.list()
	if err != nil {
		return attachment{}, err
	}
	if a, again := all[link]; again && !a.damaged() {
		return a, nil
	}
	used, unknown := map[netip.Addr]bool{}, false
	for _, a := range all {
		unknown = unknown || a.damaged()
		for _, address := range a.Addresses {
			used[address] = true
		}
	}
	if unknown {
		known, err := held()
		if err != nil {
			return attachment{}, err
		}
		for address := range known {
			used[address] = true
		}
	}
	last := filepath.Join(string(s), "last")
	content, err := os.ReadFile(last)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return attachment{}, err
	}
	var number uint32
	_ = json.Unmarshal(content, &number) // the first one if it cannot be read
	pods := podsOf(networks)
	for range pods {
		if number++; number < firstPod || number >= firstPod+pods {
			number = firstPod
		}
		a := attachment{Link: link}
		taken := false
		for _, network := range networks {
			address := nth(network, number)
			taken = taken || used[address]
			a.Addresses = append(a.Addresses, address)
		}
		if taken {
			continue
		}
		return a, errors.Join(writeJSON(last, number), writeJSON(s.file(link), a))
	}
	return attachment{}, fmt.Errorf("%w in %v", errFull, networks)
}

// remove forgets the attachment of a link, which frees its addresses.
func (s store) remove(link string) error {
	if err := os.Remove(s.file(link)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s store) file(link string) string { return filepath.Join(string(s), link+".json") }

// podsOf is the number of pods that have an address of each network; at most 65,536.
func podsOf(networks []netip.Prefix) uint32 {
	pods := uint32(1 << 16)
	for _, n := range networks {
		if bits := n.Addr().BitLen() - n.Bits(); bits < 16 {
			pods = min(pods, max(uint32(1)<<bits, firstPod+keptAtEnd)-firstPod-keptAtEnd)
		}
	}
	return pods
}

// nth is the address with this number in a network.
func nth(network netip.Prefix, number uint32) netip.Addr {
	bytes := network.Masked().Addr().AsSlice()
	end := bytes[len(bytes)-4:]
	binary.BigEndian.PutUint32(end, binary.BigEndian.Uint32(end)+number)
	address, _ := netip.AddrFromSlice(bytes) // of the length that it came with
	return address
}

// writeJSON replaces a file by one that is complete.
func writeJSON(file string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return replace(file, content, 0o644)
}

// replace writes a file under another name first. The content is on the disk before it has the
// name, so that a power failure leaves no empty file.
func replace(file string, content []byte, mode os.FileMode) error {
	unfinished := file + ".unfinished"
	f, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(unfinished, file)
}
