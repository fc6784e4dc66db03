package sessions

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.fd.io/govpp/adapter"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/vlib"

	"github.com/troupe-vpp/troupe/vpp/link"
	"github.com/troupe-vpp/troupe/vpp/simulator"
)

// oddCLI is a VPP whose command line has another output.
type oddCLI struct{ link.Caller }

func (o *oddCLI) Do(ctx context.Context, reqs []api.Message) ([]link.Result, error) {
	if _, cli := reqs[0].(*vlib.CliInband); cli {
		return []link.Result{{Reply: &vlib.CliInbandReply{Reply: "%% no such command"}}}, nil
	}
	return o.Caller.Do(ctx, reqs)
}

func TestRead(t *testing.T) {
	r := newRig(t, 0)
	read := func(want Usage) {
		t.Helper()
		if got, err := r.reader.Read(t.Context()); err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	read(Usage{})
	r.enable(1000)
	read(Usage{Enabled: true, Base: 1000})
	r.fill(simulator.ProtoUDP, 12)
	read(Usage{Enabled: true, Base: 1000, Busiest: 12, Total: 12})
	if err := r.Restart(); err != nil { // another VPP, and not the memory of the dead one
		t.Fatal(err)
	}
	read(Usage{})
}

func TestReadWithoutStatistics(t *testing.T) {
	dir := t.TempDir()
	missing := NewReader(filepath.Join(dir, "none.sock"))
	if _, err := missing.Read(t.Context()); !errors.Is(err, ErrNoStats) {
		t.Errorf("no socket: %v", err)
	}
	r := newRig(t, 1000)
	r.Crash()
	if _, err := r.reader.Read(t.Context()); !errors.Is(err, ErrNoStats) {
		t.Errorf("dead VPP: %v", err)
	}
	bare := simulator.New(simulator.Options{WithoutPlugins: []string{"nat44_ed"}})
	t.Cleanup(func() { _ = bare.Close() })
	if err := bare.ListenStats(filepath.Join(dir, "bare.sock")); err != nil {
		t.Fatal(err)
	}
	if _, err := NewReader(bare.StatsSocket()).Read(t.Context()); !errors.Is(err, ErrNoStats) {
		t.Errorf("no plugin: %v", err)
	}
}

// TestReadFromASilentVPP: the caller is not held, and does not start one attempt after the other.
func TestReadFromASilentVPP(t *testing.T) {
	r := newRig(t, 1000)
	r.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for range 3 {
		if _, err := r.reader.Read(ctx); !errors.Is(err, ErrSilent) {
			t.Errorf("%v", err)
		}
	}
	if _, err := r.reader.Read(t.Context()); !errors.Is(err, ErrSilent) {
		t.Errorf("%v", err)
	}
	r.Resume()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if u, err := r.reader.Read(t.Context()); err == nil && u.Enabled {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("does not recover: %+v, %v", u, err)
		}
	}
}

// TestReadDamagedMemory: GoVPP follows pointers and lengths in the memory of another process;
// whatever they are, the agent survives.
func TestReadDamagedMemory(t *testing.T) {
	whole := segmentOf(t)
	for name, damage := range map[string]func(file *os.File) error{
		"shorter than it says": func(f *os.File) error { return f.Truncate(4096) },
		"a pointer astray":     func(f *os.File) error { _, err := f.WriteAt([]byte{0xff, 0xff, 0xff}, 32); return err },
		"a very long vector": func(f *os.File) error {
			for at := int64(4096); at < 8192; at += 64 {
				if _, err := f.WriteAt([]byte{0xff, 0xff, 0xff, 0x7f}, at); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := os.CreateTemp(t.TempDir(), "segment")
			if err == nil {
				_, err = file.Write(whole)
			}
			if err == nil {
				err = damage(file)
			}
			if err != nil {
				t.Fatal(err)
			}
			path := handOut(t, file)
			if u, err := NewReader(path).Read(t.Context()); !errors.Is(err, ErrNoStats) {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
}

// segmentOf returns the first pages of a real segment, as the simulator makes it.
func segmentOf(t *testing.T) []byte {
	r := newRig(t, 1000)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: r.StatsSocket()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	oob := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		t.Fatal(err)
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil {
		t.Fatal(err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fds[0]), "segment")
	defer func() { _ = file.Close() }()
	pages := make([]byte, 64<<10)
	if _, err := file.ReadAt(pages, 0); err != nil {
		t.Fatal(err)
	}
	return pages
}

// handOut serves a file as VPP serves its statistics.
func handOut(t *testing.T, file *os.File) string {
	path := filepath.Join(t.TempDir(), "stats.sock")
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.AcceptUnix()
			if err != nil {
				return
			}
			_, _, _ = conn.WriteMsgUnix(nil, syscall.UnixRights(int(file.Fd())), nil)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-ended
		_ = file.Close()
	})
	return path
}

func TestUsageOf(t *testing.T) {
	entry := func(name string, data adapter.Stat) adapter.StatEntry {
		return adapter.StatEntry{StatIdentifier: adapter.StatIdentifier{Name: []byte(name)}, Data: data}
	}
	total := entry(entryTotal, adapter.SimpleCounterStat{{0}, {7}, {5}, {}})
	base := entry(entryBase, adapter.ScalarStat(1000))
	if u, err := usageOf([]adapter.StatEntry{total, base}); err != nil || u != (Usage{Enabled: true, Busiest: 7, Total: 12, Base: 1000}) {
		t.Errorf("%+v, %v", u, err)
	}
	gauge := entry(entryBase, nil) // of VPP 26.06, as GoVPP's client returns it
	if u, err := usageOf([]adapter.StatEntry{gauge, total}); !errors.Is(err, ErrNoLimit) || u != (Usage{Busiest: 7, Total: 12}) {
		t.Errorf("gauge: %+v, %v", u, err)
	}
	for name, found := range map[string][]adapter.StatEntry{
		"nothing": nil, "a gauge alone": {gauge}, "no limit": {total}, "no sessions": {base},
		"other types": {entry(entryTotal, adapter.ScalarStat(1)), entry(entryBase, adapter.NameStat{})},
	} {
		if u, err := usageOf(found); !errors.Is(err, ErrNoStats) {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
	}
}
