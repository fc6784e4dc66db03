package simulator

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"

	"github.com/troupe-vpp/troupe/vpp/simulator/model"
)

// Names of the statistics that the simulated VPP keeps.
const (
	statHeartbeat   = "/sys/heartbeat"
	statLastClear   = "/sys/last_stats_clear"
	statBootTime    = "/sys/boottime"
	statSessions    = "/nat44-ed/total-sessions"
	statMaxSessions = "/nat44-ed/max-cfg-sessions"
	statNames       = "/if/names"
	statHeap        = "/mem/main heap"
	statNewTCP      = "/nat44-ed/out2in/slowpath/tcp"
	statSlowDrops   = "/nat44-ed/in2out/slowpath/drops"
	statSlowOther   = "/nat44-ed/in2out/slowpath/other"
	statFastOther   = "/nat44-ed/in2out/fastpath/other"
)

// heartbeatInterval is how often VPP collects statistics, in seconds (update-interval in the
// section statseg of startup.conf).
const heartbeatInterval = 10

// statServer hands the statistics of one incarnation to its clients.
type statServer struct {
	listener *net.UnixListener
	segment  *segment
	gone     chan struct{} // closed when the incarnation ends
	names    uint64        // version of the interface names in the directory
	beat     uint64        // number of the last update
}

// ListenStats opens the statistics socket at path and serves it until Close. A client is handed the
// shared memory with the statistics of the running VPP and reads it without asking again:
// heartbeat, boot time, the names of the interfaces, the sessions of NAT44-ED and the number of
// them that the plugin was enabled with, and some counters of its packets for all interfaces
// together. A restart opens the same path again, with memory of its
// own; the memory of a crashed VPP stays readable and does not change any more.
func (v *VPP) ListenStats(path string) error {
	v.lifecycle.Lock()
	defer v.lifecycle.Unlock()
	v.mu.Lock()
	switch {
	case v.closed:
		v.mu.Unlock()
		return ErrClosed
	case v.statsPath != "":
		v.mu.Unlock()
		return ErrListening
	}
	v.mu.Unlock()
	if err := v.bindStats(path); err != nil {
		return err
	}
	v.mu.Lock()
	v.statsPath = path
	v.mu.Unlock()
	return nil
}

// StatsSocket returns the path of the statistics socket, "" before ListenStats.
func (v *VPP) StatsSocket() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.statsPath
}

// bindStats opens the statistics socket of the present incarnation. The lifecycle lock is held.
func (v *VPP) bindStats(path string) error {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	segment, err := newSegment()
	if err != nil {
		return err
	}
	ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		segment.Close()
		return fmt.Errorf("listen on %s: %w", path, err)
	}
	ln.SetUnlinkOnClose(false)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || v.inc == nil {
		_ = ln.Close()
		segment.Close()
		return ErrDown
	}
	s := &statServer{listener: ln, segment: segment, gone: make(chan struct{})}
	v.stats = s
	v.publishStats(v.inc.model)
	v.wg.Go(func() { v.acceptStats(s) })
	return nil
}

// acceptStats hands out the segment until the listener is closed. As VPP it serves one client at a
// time, and none while it hangs.
func (v *VPP) acceptStats(s *statServer) {
	for {
		conn, err := s.listener.AcceptUnix()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) && v.ctx.Err() == nil {
				v.log.Error("cannot accept a statistics client", "err", err)
			}
			return
		}
		if v.awake(s) {
			v.handOut(conn, s)
		}
		_ = conn.Close()
	}
}

// awake waits while VPP hangs. It reports false when that VPP is gone.
func (v *VPP) awake(s *statServer) bool {
	for {
		v.mu.Lock()
		hung, current := v.hung, v.stats == s
		v.mu.Unlock()
		if hung == nil || !current {
			return current
		}
		select {
		case <-hung:
		case <-s.gone:
		}
	}
}

// handOut passes the file of the segment to a client. The incarnation may end meanwhile; then the
// file is closed already and the client gets nothing.
func (v *VPP) handOut(conn *net.UnixConn, s *statServer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stats != s {
		return
	}
	v.updateStats(v.inc.model)
	if _, _, err := conn.WriteMsgUnix(nil, syscall.UnixRights(int(s.segment.File.Fd())), nil); err != nil {
		v.log.Debug("statistics client disconnected", "err", err)
	}
}

// closeStats ends the statistics of an incarnation. mu is held.
func (v *VPP) closeStats() {
	if v.stats == nil {
		return
	}
	_ = v.stats.listener.Close()
	close(v.stats.gone)
	v.stats.segment.Close()
	v.stats = nil
}

// updateStats brings the statistics up to date. mu is held.
func (v *VPP) updateStats(m *model.Model) {
	if v.stats == nil {
		return
	}
	if v.stats.names != m.Named {
		v.publishStats(m)
		return
	}
	v.storeStats(m)
}

// publishStats writes a directory that fits the present interfaces. mu is held.
func (v *VPP) publishStats(m *model.Model) {
	entries := []statEntry{
		{Name: statHeartbeat, Kind: statScalar},
		{Name: statLastClear, Kind: statScalar},
		{Name: statBootTime, Kind: statScalar},
		{Name: statNames, Kind: statStrings, Strings: m.NameVector()},
		{Name: statHeap, Kind: statCounter, Threads: 1, Width: 7},
	}
	if !slices.Contains(v.opts.WithoutPlugins, "nat44_ed") {
		entries = append(entries,
			statEntry{Name: statSessions, Kind: statCounter, Threads: 1 + m.Workers},
			statEntry{Name: statMaxSessions, Kind: statScalar},
			statEntry{Name: statNewTCP, Kind: statCounter, Threads: 1 + m.Workers},
			statEntry{Name: statSlowDrops, Kind: statCounter, Threads: 1 + m.Workers},
			statEntry{Name: statSlowOther, Kind: statCounter, Threads: 1 + m.Workers},
			statEntry{Name: statFastOther, Kind: statCounter, Threads: 1 + m.Workers},
		)
	}
	v.stats.names, v.stats.beat = m.Named, 0
	v.stats.segment.Publish(entries)
	v.storeStats(m)
}

// storeStats writes the present values; values of the heap at each update only, as VPP does. Where
// there are workers, the first one has all sessions. mu is held.
func (v *VPP) storeStats(m *model.Model) {
	segment := v.stats.segment
	if beat := 1 + uint64(m.Now()/heartbeatInterval); beat != v.stats.beat {
		v.stats.beat = beat
		segment.Set(statHeartbeat, 0, beat)
		total, used := m.HeapUsage()
		segment.Set(statHeap, 0, uint64(total))
		segment.Set(statHeap, 1, uint64(used))
		segment.Set(statHeap, 2, uint64(total-used))
	}
	segment.Set(statBootTime, 0, uint64(v.inc.boot.Unix()))
	segment.Set(statSessions, min(m.Workers, 1), uint64(m.NAT.Sessions.Len()))
	segment.Set(statMaxSessions, 0, uint64(m.NAT.PerThread))
	segment.Set(statNewTCP, 0, m.NAT.Counters.NewTCP)
	segment.Set(statSlowDrops, 0, m.NAT.Counters.SlowDrops)
	segment.Set(statSlowOther, 0, m.NAT.Counters.SlowOther)
	segment.Set(statFastOther, 0, m.NAT.Counters.FastOther)
}
