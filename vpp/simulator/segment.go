package simulator

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Layout of VPP's statistics segment, version 2 (vlib/stats/shared.h). All numbers are in the byte
// order of the machine.
const (
	statVersion = 2
	statSize    = 32 << 20      // VPP's default; the file is sparse
	statBase    = 0x130_0000_00 // where "VPP" has mapped it: pointers are relative to that
	segmentHeap = 4096          // the first page is the header
	statArena   = (statSize - segmentHeap) / 2

	// Fields of the header. Behind them the page is zero: GoVPP takes a word there for a vector
	// of errors, as older VPPs had it.
	statAtVersion, statAtBase, statAtEpoch, statAtInProgress, statAtDirectory = 0, 8, 16, 24, 32

	// Fields of a directory entry.
	statEntrySize, statEntryValue, statEntryName, statNameSize = 144, 8, 16, 128
)

// statKind is the type of a directory entry, with VPP's numbers.
type statKind int32

// The kinds of statistics that the simulator keeps.
const (
	statScalar  statKind = 1
	statCounter statKind = 2 // counters by thread and index
	statStrings statKind = 4 // names by index
)

// statEntry is the record of one statistic in the directory.
type statEntry struct {
	Name    string
	Kind    statKind
	Threads int      // of a counter: how many threads count
	Width   int      // of a counter: how many values each thread has, 0 = one
	Strings []string // of a vector of names
}

// segment is the shared memory in which one incarnation of VPP keeps its statistics. Readers map
// the same pages and hold no lock: whatever they could be looking at stays as it is until the
// directory has changed twice.
type segment struct {
	File  *os.File
	mem   []byte
	epoch uint64
	arena int              // which half of the heap the directory is in
	used  int              // end of what is in use, an offset
	at    map[string][]int // offsets of values: one of a scalar, one per thread of a counter
}

// newSegment makes a segment without entries. The file has no name; it lives as long as a process
// has it open or mapped.
func newSegment() (*segment, error) {
	file, err := os.CreateTemp("", "stat-segment-")
	if err != nil {
		return nil, fmt.Errorf("make statistics segment: %w", err)
	}
	_ = os.Remove(file.Name())
	s := &segment{File: file, arena: 1}
	if err = file.Truncate(statSize); err == nil {
		s.mem, err = syscall.Mmap(int(file.Fd()), 0, statSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("make statistics segment: %w", err)
	}
	s.store(statAtVersion, statVersion)
	s.store(statAtBase, statBase)
	return s, nil
}

// Close releases the memory. A client that has mapped it keeps reading the last content, as after a
// crash of VPP.
func (s *segment) Close() {
	_ = syscall.Munmap(s.mem)
	_ = s.File.Close()
}

// store writes one word as a reader of the shared memory has to see it: whole, and after everything
// that was stored before.
func (s *segment) store(at int, value uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&s.mem[at])), value)
}

// Publish replaces the directory. Values start at 0.
func (s *segment) Publish(entries []statEntry) {
	s.store(statAtInProgress, 1)
	s.arena = 1 - s.arena
	s.used = segmentHeap + s.arena*statArena
	s.at = make(map[string][]int)
	dir := s.vector(len(entries), statEntrySize)
	for i, e := range entries {
		at := dir + i*statEntrySize
		clear(s.mem[at : at+statEntrySize])
		binary.NativeEndian.PutUint32(s.mem[at:], uint32(e.Kind))
		copy(s.mem[at+statEntryName:at+statEntryName+statNameSize-1], e.Name)
		s.fill(at+statEntryValue, e)
	}
	s.store(statAtDirectory, pointerTo(dir))
	s.epoch++
	s.store(statAtEpoch, s.epoch)
	s.store(statAtInProgress, 0)
}

// fill makes what the value of an entry points to.
func (s *segment) fill(value int, e statEntry) {
	switch e.Kind {
	case statScalar:
		s.at[e.Name] = []int{value}
	case statCounter:
		threads := s.vector(e.Threads, 8)
		for t := range e.Threads {
			counters := s.vector(max(e.Width, 1), 8)
			s.store(threads+8*t, pointerTo(counters))
			for i := range max(e.Width, 1) {
				s.store(counters+8*i, 0)
				s.at[e.Name] = append(s.at[e.Name], counters+8*i)
			}
		}
		s.store(value, pointerTo(threads))
	case statStrings:
		names := s.vector(len(e.Strings), 8)
		for i, text := range e.Strings {
			if text == "" {
				s.store(names+8*i, 0) // an index that is free
				continue
			}
			name := s.vector(len(text)+1, 1)
			s.mem[name+copy(s.mem[name:], text)] = 0
			s.store(names+8*i, pointerTo(name))
		}
		s.store(value, pointerTo(names))
	}
}

// vector allocates a vector as VPP's library has it: the number of elements stands in the word
// before the first one.
func (s *segment) vector(length, size int) (at int) {
	at = (s.used+8+63)&^63 + 8 // aligned as cache lines are, header included
	s.store(at-8, uint64(length))
	s.used = at + length*size
	if s.used > segmentHeap+(s.arena+1)*statArena {
		panic("simulator: statistics segment is full") // 16 MiB of names: no test does that
	}
	return at
}

// pointerTo is an offset as VPP would see it.
func pointerTo(at int) uint64 { return statBase + uint64(at) }

// Set changes the value of a scalar, or one value of a counter, by its place among the values of
// all threads. Statistics that the directory does not have are not kept.
func (s *segment) Set(name string, place int, value uint64) {
	if at := s.at[name]; place < len(at) {
		s.store(at[place], value)
	}
}
