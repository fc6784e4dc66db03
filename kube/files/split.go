package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// document is a piece of a stream between two separators.
type document struct {
	text   []byte
	number int // counts from 1, empty documents not counted
	line   int // of its first byte in the stream, from 1
	long   bool
}

// split cuts a stream at the lines that start a YAML document ("---") or end one ("..."). No line
// in a block scalar or in JSON can look like such a line. Documents without content are left out.
// The text is valid only during the call of each.
func split(r io.Reader, each func(document)) error {
	return splitWithin(r, maxStream, maxDocument, each)
}

// splitWithin is split with other limits for the stream and for a document, in bytes.
func splitWithin(r io.Reader, stream, document int, each func(document)) error {
	s := splitter{in: bufio.NewReaderSize(r, 64<<10), each: each, line: 1, stream: stream, document: document}
	// Editors on Windows write a byte order mark. UTF-16 gets an error of its own, because decoding
	// it would give a thousand misleading errors.
	if mark, err := s.in.Peek(3); err == nil && bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = s.in.Discard(len(mark)) // the mark was peeked, so discarding it cannot fail
	} else if len(mark) >= 2 && (mark[0] == 0xff && mark[1] == 0xfe || mark[0] == 0xfe && mark[1] == 0xff) {
		return errors.New("the text is UTF-16, it must be UTF-8")
	}
	return s.run()
}

// splitter is the state of split between two reads.
type splitter struct {
	in   *bufio.Reader
	each func(document)
	doc  document
	line int // of the next byte
	read int // bytes so far

	stream, document int // limits in bytes
}

// run reads to the end. A chunk is a line, or a part of a line longer than the buffer. Only the
// start of a line can separate documents.
func (s *splitter) run() error {
	s.doc.line = 1
	for start := true; ; {
		chunk, err := s.in.ReadSlice('\n')
		s.read += len(chunk)
		// The limit counts before the documents are decoded, so that an endless stream ends early.
		if s.read > s.stream {
			return fmt.Errorf("the stream is larger than %d MiB", s.stream>>20)
		}
		if start && separates(chunk) {
			s.flush()
			s.doc.line = s.line
			if chunk[0] == '-' {
				copy(chunk, "   ") // content may follow in the same line, and keeps its column
			} else {
				chunk = chunk[:0]
				s.doc.line++
			}
		}
		s.append(chunk)
		start = err == nil
		if start {
			s.line++
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			s.flush()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read: %w", err)
		}
	}
}

// separates reports whether a line starts or ends a document.
func separates(line []byte) bool {
	if len(line) < 3 || !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0
}

// append adds a chunk to the document. It drops the rest of a document that is too long, so memory
// stays within the limit.
func (s *splitter) append(chunk []byte) {
	if len(s.doc.text)+len(chunk) > s.document {
		s.doc.long = true
	}
	if !s.doc.long {
		s.doc.text = append(s.doc.text, chunk...)
	}
}

// flush hands the document over and starts the next one.
func (s *splitter) flush() {
	if s.doc.long || hasContent(s.doc.text) {
		s.doc.number++
		s.each(s.doc)
	}
	// The buffer is reused, so that the dump of a cluster is not copied again and again while it
	// grows.
	s.doc.text, s.doc.long, s.doc.line = s.doc.text[:0], false, s.line
}

// hasContent reports whether there is more than blanks, comments and directives.
func hasContent(text []byte) bool {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		directive := len(line) > 0 && line[0] == '%'
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !directive {
			return true
		}
	}
	return false
}
