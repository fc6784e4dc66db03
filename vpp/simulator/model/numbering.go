package model

import (
	"slices"

	"go.fd.io/govpp/binapi/memclnt"
)

// Numbering is the numbering of the messages in one incarnation of VPP.
type Numbering struct {
	byID    map[uint16]*Message
	idOf    map[string]uint16
	Entries []memclnt.MessageTableEntry
}

// Message ids of incarnation n start at idBase + n*idStride: no number means two different messages
// in neighbouring incarnations, so a client that kept a stale id talks into the void instead of
// doing something else by luck.
const (
	idBase   = 100
	idStride = 1024
	idCycles = 60
)

// Number assigns ids for incarnation n. sockclnt_create and its reply keep their fixed ids;
// everything else is shuffled.
func (cat *Catalog) Number(n uint64) *Numbering {
	t := &Numbering{
		byID: make(map[uint16]*Message, len(cat.Names)),
		idOf: make(map[string]uint16, len(cat.Names)),
	}
	next := uint16(idBase + n%idCycles*idStride)
	// A stride that is coprime to the number of names visits each once.
	step := 7919 % len(cat.Names)
	for gcd(step, len(cat.Names)) != 1 {
		step++
	}
	at := int(n % uint64(len(cat.Names)))
	for range cat.Names {
		name := cat.Names[at]
		at = (at + step) % len(cat.Names)
		id := next
		switch name {
		case "sockclnt_create":
			id = IDSockclntCreate
		case "sockclnt_create_reply":
			id = IDSockclntCreateReply
		default:
			next++
		}
		t.add(cat.Named(name), id)
	}
	t.deleteLast()
	return t
}

// Of returns the id of a message.
func (t *Numbering) Of(name string) uint16 { return t.idOf[name] }

// Message returns the message with an id, nil if there is none.
func (t *Numbering) Message(id uint16) *Message { return t.byID[id] }

// add gives a message its id, with a name that is cut as VPP does.
func (t *Numbering) add(m *Message, id uint16) {
	t.byID[id] = m
	t.idOf[m.Name] = id
	t.Entries = append(t.Entries, memclnt.MessageTableEntry{Index: id, Name: m.table[:min(len(m.table), maxTableName)]})
}

// deleteLast moves sockclnt_delete behind its reply: GoVPP takes the last entry whose name starts
// with sockclnt_delete_ for the request.
func (t *Numbering) deleteLast() {
	for i, e := range t.Entries {
		if t.byID[e.Index].Name == "sockclnt_delete" {
			t.Entries = append(slices.Delete(t.Entries, i, i+1), e)
			return
		}
	}
}

// gcd returns the greatest common divisor of a and b.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
