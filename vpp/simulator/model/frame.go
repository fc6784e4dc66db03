package model

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// FrameHeaderSize is the size of the header in front of every frame: 8 bytes that belong to the
// sender, the payload length, 4 bytes that belong to the sender. Only the length means anything to
// the receiver.
const FrameHeaderSize = 16

// frameStep bounds how much memory a frame may claim ahead of its bytes: the payload buffer grows
// by at most this much per read.
const frameStep = 64 << 10

// errFrameTooBig is returned when the length field of a frame header exceeds the limit.
var errFrameTooBig = errors.New("frame too big")

// FrameReader cuts the byte stream of one connection into frame payloads, however the frames were
// split or coalesced on the way.
type FrameReader struct {
	r   *bufio.Reader
	max uint32
	buf []byte
}

// NewFrameReader returns a reader of frames with at most limit payload bytes.
func NewFrameReader(r io.Reader, limit uint32) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, frameStep), max: limit}
}

// Next returns the payload of the next frame. The slice is valid until the next call. io.EOF means
// that the stream ended between two frames.
func (f *FrameReader) Next() ([]byte, error) {
	var header [FrameHeaderSize]byte
	if _, err := io.ReadFull(f.r, header[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(header[8:12])
	if length > f.max {
		return nil, fmt.Errorf("frame of %d bytes: %w", length, errFrameTooBig)
	}
	return f.payload(int(length))
}

// payload reads length bytes into the reader's buffer, which grows only as fast as bytes arrive.
func (f *FrameReader) payload(length int) ([]byte, error) {
	for have := 0; have < length; {
		want := min(length, have+frameStep)
		if cap(f.buf) < want {
			grown := make([]byte, want, max(want, min(length, 2*cap(f.buf))))
			copy(grown, f.buf[:have])
			f.buf = grown
		}
		f.buf = f.buf[:want]
		if _, err := io.ReadFull(f.r, f.buf[have:want]); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		have = want
	}
	return f.buf[:length], nil
}
