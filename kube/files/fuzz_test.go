package files

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// FuzzDecode: no input stops the process. Every error names an object or a place in the input. The
// objects can be stored and sent, and the same input gives the same result again.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(web))
	f.Fuzz(func(t *testing.T, in []byte) {
		objects, problems := Decode(bytes.NewReader(in), "f")
		nameless := 0
		for _, p := range problems {
			if p.GetObject() == "" {
				nameless++
			}
			if p.GetSource() != "f" || p.GetMessage() == "" || !utf8.ValidString(p.GetMessage()+p.GetObject()+p.GetField()) {
				t.Errorf("incomplete error: %v", p)
			}
		}
		if nameless > 2 {
			// errors of the stream as a whole, and the number of further errors
			t.Errorf("%d errors without a place: %v", nameless, problems)
		}
		snapshot := kube.Collect("n1", objects, problems)
		if _, err := proto.Marshal(snapshot); err != nil {
			t.Errorf("cannot be sent: %v", err)
		}
		for _, s := range objects.Services {
			checkService(t, s)
		}
		again, sameProblems := Decode(bytes.NewReader(in), "f")
		if diff := cmp.Diff(snapshot, kube.Collect("n1", again, sameProblems), protocmp.Transform()); diff != "" {
			t.Errorf("another result from the same input:\n%s", diff)
		}
	})
}

// checkService checks the properties on which kube/service relies.
func checkService(t *testing.T, s *messages.Service) {
	for i := range min(len(s.GetClusterIps()), len(s.GetIpFamilies())) {
		isV6 := bytes.ContainsRune([]byte(s.GetClusterIps()[i]), ':')
		if isV6 != (s.GetIpFamilies()[i] == messages.IPFamily_IPV6) {
			t.Errorf("cluster IP %d is not of family %d: %v", i, i, s)
		}
	}
	for _, p := range s.GetPorts() {
		if p.GetPort() == 0 || p.GetPort() > 65535 || p.GetNodePort() > 65535 || p.GetProtocol() == 0 {
			t.Errorf("port out of range: %v", p)
		}
	}
}
