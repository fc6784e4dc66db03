package cluster

import "testing"

// FuzzKey: a parsed key is exactly the key that the layout builds; every other key is unknown.
func FuzzKey(f *testing.F) {
	l := etcdLayout{prefix: "/troupe/v1"}
	for _, key := range []string{l.id(1), l.id(4294967295), l.name("n1"), l.addresses("a.b-c"), l.root() + "id/01", l.root() + "name/a/b", l.root(), "/other/nodes/id/1"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		var written string
		switch p := l.parse(key); p.kind {
		case kindID:
			written = l.id(p.id)
		case kindName:
			written = l.name(p.name)
		case kindAddresses:
			written = l.addresses(p.name)
		default:
			if p != (parsedKey{}) {
				t.Fatalf("%q is unknown, and yet %+v", key, p)
			}
			return
		}
		if written != key {
			t.Fatalf("%q is read as what would be written %q", key, written)
		}
	})
}
