package wire

import (
	"encoding/binary"
	"math"
	"reflect"
	"strings"
)

// layout is the wire format of a message, reduced to what is needed to compute its size from its
// own count fields before decoding it. VPP drops a message that is shorter than the size it claims;
// decoding first would allocate as much as a hostile count field says.
type layout []layoutOp

type layoutKind uint8

const (
	layoutFixed  layoutKind = iota // size bytes
	layoutCount                    // size bytes that hold the length of a later array
	layoutArray                    // as many elem as the count in slot says
	layoutString                   // 4 bytes of length and the string
)

type layoutOp struct {
	kind layoutKind
	size int
	slot string
	elem layout
}

// compileLayout derives the layout of a generated binapi struct from its field types and "binapi"
// tags.
func compileLayout(t reflect.Type) layout {
	var ops layout
	counts := countFields(t)
	for i := range t.NumField() {
		ops = append(ops, fieldLayout(t.Field(i), counts)...)
	}
	return ops.merge()
}

// countFields returns the names of the fields of t that count an array.
func countFields(t reflect.Type) map[string]bool {
	counts := make(map[string]bool)
	for i := range t.NumField() {
		if f := t.Field(i); f.Type.Kind() == reflect.Slice {
			_, dim, _ := parseTag(f.Tag.Get("binapi"))
			counts[dim] = true
		}
	}
	return counts
}

// parseTag splits a tag like "nat44_lb_addr_port[local_num],name=locals" into type, dimension and
// name.
func parseTag(tag string) (typ, dim, name string) {
	typ, rest, _ := strings.Cut(tag, ",")
	if open := strings.IndexByte(typ, '['); open >= 0 && strings.HasSuffix(typ, "]") {
		typ, dim = typ[:open], typ[open+1:len(typ)-1]
	}
	for part := range strings.SplitSeq(rest, ",") {
		if n, ok := strings.CutPrefix(part, "name="); ok {
			name = n
		}
	}
	return typ, dim, name
}

// fieldLayout returns the layout of one struct field.
func fieldLayout(f reflect.StructField, counts map[string]bool) layout {
	_, dim, name := parseTag(f.Tag.Get("binapi"))
	switch f.Type.Kind() {
	case reflect.String:
		if n, ok := decimal(dim); ok && n > 0 {
			return layout{{kind: layoutFixed, size: n}}
		}
		return layout{{kind: layoutString}}
	case reflect.Slice:
		elem := valueLayout(f.Type.Elem())
		if n, ok := decimal(dim); ok {
			return repeat(elem, n)
		}
		return layout{{kind: layoutArray, slot: dim, elem: elem}}
	default:
		l := valueLayout(f.Type)
		if counts[name] && len(l) == 1 {
			return layout{{kind: layoutCount, size: l[0].size, slot: name}}
		}
		return l
	}
}

// valueLayout returns the layout of a value of type t outside of a struct.
func valueLayout(t reflect.Type) layout {
	switch t.Kind() {
	case reflect.Struct:
		return compileLayout(t)
	case reflect.Array:
		return repeat(valueLayout(t.Elem()), t.Len())
	default:
		return layout{{kind: layoutFixed, size: int(t.Size())}}
	}
}

// repeat returns the layout of n values of layout elem.
func repeat(elem layout, n int) layout {
	var ops layout
	for range n {
		ops = append(ops, elem...)
	}
	return ops.merge()
}

// merge joins neighbouring fixed parts.
func (l layout) merge() layout {
	var out layout
	for _, op := range l {
		if n := len(out); op.kind == layoutFixed && n > 0 && out[n-1].kind == layoutFixed {
			out[n-1].size += op.size
			continue
		}
		out = append(out, op)
	}
	return out
}

// fits reports whether data is at least as long as the message it claims to be.
func (l layout) fits(data []byte) bool {
	_, ok := l.measure(data, 0)
	return ok
}

// measure walks the layout over data from pos and returns the position behind it, or false when
// data ends before.
func (l layout) measure(data []byte, pos uint64) (uint64, bool) {
	var counts map[string]uint64
	for _, op := range l {
		switch op.kind {
		case layoutCount:
			n, ok := readUint(data, pos, op.size)
			if !ok {
				return 0, false
			}
			if counts == nil {
				counts = make(map[string]uint64, 1)
			}
			counts[op.slot] = n
			pos += uint64(op.size)
		case layoutArray:
			var ok bool
			if pos, ok = op.elem.measureN(data, pos, counts[op.slot]); !ok {
				return 0, false
			}
		case layoutString:
			n, ok := readUint(data, pos, 4)
			if !ok {
				return 0, false
			}
			pos += 4 + n
		default:
			pos += uint64(op.size)
		}
		if pos > uint64(len(data)) {
			return 0, false
		}
	}
	return pos, true
}

// measureN walks n values of layout l.
func (l layout) measureN(data []byte, pos, n uint64) (uint64, bool) {
	if len(l) == 1 && l[0].kind == layoutFixed {
		if n > math.MaxUint32 {
			return 0, false
		}
		end := pos + n*uint64(l[0].size)
		return end, end <= uint64(len(data))
	}
	for range n {
		var ok bool
		before := pos
		if pos, ok = l.measure(data, pos); !ok || pos == before {
			return 0, false
		}
	}
	return pos, true
}

// readUint reads a big-endian number of size bytes at pos.
func readUint(data []byte, pos uint64, size int) (uint64, bool) {
	if pos+uint64(size) > uint64(len(data)) {
		return 0, false
	}
	switch b := data[pos:]; size {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(binary.BigEndian.Uint16(b)), true
	case 4:
		return uint64(binary.BigEndian.Uint32(b)), true
	default:
		return 0, false
	}
}

// decimal parses a non-negative decimal number; empty means 0 and false.
func decimal(s string) (int, bool) {
	if s == "" {
		return 0, false
	}
	n := 0
	for _, c := range s {
		if c < '0' || c > '9' || n > 1<<20 {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
