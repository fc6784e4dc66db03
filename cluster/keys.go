package cluster

import (
	"strconv"
	"strings"
)

// kind is the type of a key.
type kind int

const (
	kindUnknown kind = iota
	kindID
	kindName
	kindAddresses
)

// layout builds and parses the keys of a store; doc.go lists them.
type layout interface {
	id(id uint32) string
	name(node string) string
	addresses(node string) string
	// parse parses a key. Any key that this layout would not build itself is kindUnknown.
	parse(key string) parsedKey
}

// etcdLayout is the layout of etcd: all keys are under one prefix.
type etcdLayout struct{ prefix string }

// root is the prefix of all keys that the store reads.
func (l etcdLayout) root() string { return l.prefix + "/nodes/" }

func (l etcdLayout) id(id uint32) string {
	return l.root() + "id/" + strconv.FormatUint(uint64(id), 10)
}

func (l etcdLayout) name(name string) string { return l.root() + "name/" + name }

func (l etcdLayout) addresses(name string) string { return l.root() + "addresses/" + name }

// probe returns a key that does not exist. A request for it checks whether etcd answers.
func (l etcdLayout) probe() string { return l.prefix + "/probe" }

// parsedKey is the information in a key: kind, ID or name.
type parsedKey struct {
	kind kind
	id   uint32 // kindID
	name string // kindName, kindAddresses
}

// parse satisfies layout. It refuses other spellings of an ID, such as "07".
func (l etcdLayout) parse(key string) parsedKey {
	family, rest, ok := strings.Cut(strings.TrimPrefix(key, l.root()), "/")
	if !ok || !strings.HasPrefix(key, l.root()) {
		return parsedKey{}
	}
	switch {
	case family == "id":
		id, err := strconv.ParseUint(rest, 10, 32)
		if err != nil || id == 0 || l.id(uint32(id)) != key {
			return parsedKey{}
		}
		return parsedKey{kind: kindID, id: uint32(id)}
	case family == "name" && validNodeName(rest):
		return parsedKey{kind: kindName, name: rest}
	case family == "addresses" && validNodeName(rest):
		return parsedKey{kind: kindAddresses, name: rest}
	default:
		return parsedKey{}
	}
}
