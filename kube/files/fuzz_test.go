package files

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/kube"
	"github.com/troupe-vpp/troupe/messages"
)

// FuzzDecode: no input stops the process, every error is complete, what comes out can be stored and sent, and twice the same input is
// twice the same result.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(web))
	f.Fuzz(func(t *testing.T, in []byte) {
		objects, problems := Decode(bytes.NewReader(in), "f")
		for _, p := range problems {
			if p.GetSource() != "f" || p.GetMessage() == "" {
				t.Errorf("incomplete error: %v", p)
			}
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

// checkService checks what kube/service relies on.
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
