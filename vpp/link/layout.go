package link

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// layout is the wire format of a message, reduced to the ends of its fields. The generated code
// allocates as many elements as a message says that it has and only then reads them, so a message
// is measured before it is decoded.
type layout struct {
	ops []layoutOp
	// least is the size of the message with every array and text empty.
	least int
}

// layoutOp is a part of a layout.
type layoutOp struct {
	kind layoutKind
	// size is the number of bytes of a fixed part, of a number of elements, or of the length of
	// a text.
	size int
	// slot is the place of the number of elements among all numbers of the layout.
	slot int
	elem *layout
	// field is the name of an array or a text, for errors.
	field string
}

// layoutKind is what a layoutOp stands for.
type layoutKind uint8

const (
	layoutFixed layoutKind = iota // size bytes
	layoutCount                   // the number of elements of a later array
	layoutArray                   // as many elements as the number in slot says
	layoutText                    // a length and as many bytes
)

// addStruct appends the fields of a struct by their tags, such as
// "nat44_lb_addr_port[local_num],name=locals"; prefix is the path to it.
func (l *layout) addStruct(typ reflect.Type, prefix string) {
	slots := map[string]int{} // of the numbers of elements, by their names
	counts := map[string]bool{}
	for i := range typ.NumField() {
		if f := typ.Field(i); f.Type.Kind() == reflect.Slice {
			dim, _ := parseTag(f.Tag.Get("binapi"))
			counts[dim] = true
		}
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		dim, name := parseTag(f.Tag.Get("binapi"))
		fixed, err := strconv.Atoi(dim)
		switch kind := f.Type.Kind(); {
		case kind == reflect.String && fixed > 0:
			l.addFixed(fixed)
		case kind == reflect.String:
			l.add(layoutOp{kind: layoutText, size: 4, field: prefix + name})
		case kind == reflect.Slice && err == nil:
			for range fixed {
				l.addValue(f.Type.Elem(), prefix+name)
			}
		case kind == reflect.Slice:
			elem := &layout{}
			elem.addValue(f.Type.Elem(), prefix+name)
			l.add(layoutOp{kind: layoutArray, slot: slots[dim], elem: elem, field: prefix + name})
		case counts[name]:
			slots[name] = l.slots()
			l.add(layoutOp{kind: layoutCount, size: int(f.Type.Size())})
		default:
			l.addValue(f.Type, prefix+name)
		}
	}
}

// addValue appends a value that is no slice and no text.
func (l *layout) addValue(typ reflect.Type, path string) {
	switch typ.Kind() {
	case reflect.Struct:
		l.addStruct(typ, path+".")
	case reflect.Array:
		for range typ.Len() {
			l.addValue(typ.Elem(), path)
		}
	default:
		l.addFixed(int(typ.Size()))
	}
}

// addFixed appends a fixed part, which is merged with one right before it.
func (l *layout) addFixed(size int) {
	if n := len(l.ops); n > 0 && l.ops[n-1].kind == layoutFixed {
		l.ops[n-1].size += size
		l.least += size
		return
	}
	l.add(layoutOp{kind: layoutFixed, size: size})
}

// add appends a part.
func (l *layout) add(op layoutOp) {
	l.ops = append(l.ops, op)
	l.least += op.size
}

// slots returns how many numbers of elements the layout has so far.
func (l *layout) slots() (n int) {
	for i := range l.ops {
		if l.ops[i].kind == layoutCount {
			n++
		}
	}
	return n
}

// parseTag returns the dimension and the name of a field, "" where there is none.
func parseTag(tag string) (dim, name string) {
	typ, rest, _ := strings.Cut(tag, ",")
	if _, after, found := strings.Cut(typ, "["); found {
		dim = strings.TrimSuffix(after, "]")
	}
	for part := range strings.SplitSeq(rest, ",") {
		if value, found := strings.CutPrefix(part, "name="); found {
			name = value
		}
	}
	return dim, name
}

// fits returns an error that says what of a message is missing in data, nil when data has all of
// it. Further bytes at the end are no error: VPP allocates some messages larger than they are.
func (l *layout) fits(data []byte) error {
	if len(data) < l.least {
		return fmt.Errorf("%d bytes, must be at least %d", len(data), l.least)
	}
	_, err := l.measure(data, 0)
	return err
}

// measure returns where the layout that begins at pos ends.
func (l *layout) measure(data []byte, pos int) (int, error) {
	var buffer [8]int
	counts := buffer[:0]
	for i := range l.ops {
		op := &l.ops[i]
		left := len(data) - pos - op.size
		if left < 0 {
			return 0, fmt.Errorf("%d bytes missing", -left)
		}
		switch op.kind {
		case layoutCount:
			counts = append(counts, number(data[pos:pos+op.size]))
		case layoutText:
			length := number(data[pos : pos+op.size])
			if length > left {
				return 0, fmt.Errorf("%s has %d bytes, there are %d", op.field, length, left)
			}
			pos += length
		case layoutArray:
			n := counts[op.slot]
			if n > left/max(1, op.elem.least) {
				return 0, fmt.Errorf("%s has %d elements of at least %d bytes, there are %d bytes", op.field, n, op.elem.least, left)
			}
			end, err := op.elem.measureAll(data, pos, n)
			if err != nil {
				return 0, fmt.Errorf("%s: %w", op.field, err)
			}
			pos = end
		case layoutFixed:
		}
		pos += op.size
	}
	return pos, nil
}

// measureAll returns where n values that begin at pos end.
func (l *layout) measureAll(data []byte, pos, n int) (int, error) {
	if len(l.ops) == 1 && l.ops[0].kind == layoutFixed {
		return pos + n*l.least, nil
	}
	var err error
	for range n {
		if pos, err = l.measure(data, pos); err != nil {
			return 0, err
		}
	}
	return pos, nil
}

// number reads a number of elements, or a length.
func number(data []byte) int {
	switch len(data) {
	case 1:
		return int(data[0])
	case 2:
		return int(binary.BigEndian.Uint16(data))
	default:
		return int(binary.BigEndian.Uint32(data))
	}
}
