package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// TestFramesHoweverCut: any list of payloads survives any way of cutting the stream.
func TestFramesHoweverCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payloads := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 0, 20).Draw(t, "payloads")
		var stream []byte
		for _, p := range payloads {
			stream = append(stream, frameOf(p)...)
		}
		r := NewFrameReader(&chunks{data: stream, n: rapid.IntRange(0, 6).Draw(t, "phase")}, 1000)
		for i, want := range payloads {
			got, err := r.Next()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("frame %d: %x, %v, want %x", i, got, err, want)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func TestBrokenFrames(t *testing.T) {
	whole := frameOf(make([]byte, 100))
	for n := 1; n < len(whole); n++ {
		r := NewFrameReader(bytes.NewReader(whole[:n]), 1000)
		if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := NewFrameReader(bytes.NewReader(whole), 99).Next(); !errors.Is(err, errFrameTooBig) {
		t.Errorf("limit 99: %v", err)
	}
	if _, err := NewFrameReader(bytes.NewReader(whole), 100).Next(); err != nil {
		t.Errorf("limit 100: %v", err)
	}
}

// TestAnnouncedSizeClaimsNoMemory: a header alone does not make the reader allocate what it
// announces.
func TestAnnouncedSizeClaimsNoMemory(t *testing.T) {
	header := frameOf(nil)
	header[8] = 0x10 // 256 MiB
	r := NewFrameReader(bytes.NewReader(append(header, make([]byte, 1000)...)), 1<<30)
	if _, err := r.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("next: %v", err)
	}
	if r.buf.Cap() > frameStep {
		t.Errorf("%d bytes allocated", r.buf.Cap())
	}
}

func TestBigFrame(t *testing.T) {
	big := make([]byte, 3*frameStep+17)
	for i := range big {
		big[i] = byte(i * 7)
	}
	stream := append(frameOf(big), frameOf([]byte("next"))...)
	r := NewFrameReader(bytes.NewReader(stream), 1<<30)
	got, err := r.Next()
	if err != nil || !bytes.Equal(got, big) {
		t.Fatalf("big frame: %d bytes, %v", len(got), err)
	}
	if got, err = r.Next(); err != nil || string(got) != "next" {
		t.Errorf("frame behind it: %q, %v", got, err)
	}
}

// FuzzFrameReader: no stream makes the reader allocate more than it brings.
func FuzzFrameReader(f *testing.F) {
	f.Add(frameOf([]byte("payload")))
	f.Add(frameOf(nil))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		frames := NewFrameReader(&chunks{data: stream}, 1<<16)
		for {
			if _, err := frames.Next(); err != nil {
				break
			}
		}
		if frames.buf.Cap() > len(stream)+2*frameStep {
			t.Errorf("%d bytes of buffer for a stream of %d", frames.buf.Cap(), len(stream))
		}
	})
}

// frameStep is more memory than a frame may claim ahead of its bytes.
const frameStep = 64 << 10

// frameOf wraps a payload.
func frameOf(payload []byte) []byte {
	frame := []byte("\xde\xad\xbe\xef\xca\xfe\xba\xbe\x00\x00\x00\x00\xff\xff\xff\xff")
	binary.BigEndian.PutUint32(frame[8:], uint32(len(payload)))
	return append(frame, payload...)
}

// chunks is a reader that returns its data in uneven pieces.
type chunks struct {
	data []byte
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	c.n = c.n%7 + 1
	n := copy(p, c.data[:min(c.n, len(c.data))])
	c.data = c.data[n:]
	return n, nil
}
