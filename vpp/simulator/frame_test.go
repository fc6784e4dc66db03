package simulator

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// TestFramesHoweverCut: any list of payloads survives any way of cutting the
// stream.
func TestFramesHoweverCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payloads := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 300), 0, 20).Draw(t, "payloads")
		var stream []byte
		for _, p := range payloads {
			stream = append(stream, frameOf(p)...)
		}
		r := newFrameReader(&chunks{data: stream, n: rapid.IntRange(0, 6).Draw(t, "phase")}, 1000)
		for i, want := range payloads {
			got, err := r.next()
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("frame %d: %x, %v, want %x", i, got, err, want)
			}
		}
		if _, err := r.next(); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func TestBrokenFrames(t *testing.T) {
	whole := frameOf(make([]byte, 100))
	for n := 1; n < len(whole); n++ {
		r := newFrameReader(bytes.NewReader(whole[:n]), 1000)
		if _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	if _, err := newFrameReader(bytes.NewReader(whole), 99).next(); !errors.Is(err, ErrFrameTooBig) {
		t.Errorf("limit 99: %v", err)
	}
	if _, err := newFrameReader(bytes.NewReader(whole), 100).next(); err != nil {
		t.Errorf("limit 100: %v", err)
	}
}

// TestAnnouncedSizeClaimsNoMemory: a header alone does not make the reader
// allocate what it announces.
func TestAnnouncedSizeClaimsNoMemory(t *testing.T) {
	header := frameOf(nil)
	header[8] = 0x10 // 256 MiB
	r := newFrameReader(bytes.NewReader(append(header, make([]byte, 1000)...)), 1<<30)
	if _, err := r.next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("next: %v", err)
	}
	if cap(r.buf) > frameStep {
		t.Errorf("%d bytes allocated", cap(r.buf))
	}
}

func TestBigFrame(t *testing.T) {
	big := make([]byte, 3*frameStep+17)
	for i := range big {
		big[i] = byte(i * 7)
	}
	stream := append(frameOf(big), frameOf([]byte("next"))...)
	r := newFrameReader(bytes.NewReader(stream), 1<<30)
	got, err := r.next()
	if err != nil || !bytes.Equal(got, big) {
		t.Fatalf("big frame: %d bytes, %v", len(got), err)
	}
	if got, err = r.next(); err != nil || string(got) != "next" {
		t.Errorf("frame behind it: %q, %v", got, err)
	}
}
