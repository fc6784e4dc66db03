package normalize_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/troupe-vpp/troupe/messages"
)

// ptr returns a pointer to v, for optional fields of the API.
func ptr[T any](v T) *T { return &v }

// wantMessage compares a message and reports the differences.
func wantMessage(t *testing.T, got, want proto.Message) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("unexpected result (-want +got):\n%s", diff)
	}
}

// wantFields compares the fields in the errors, and checks that each error is complete.
func wantFields(t *testing.T, problems []*messages.ObjectError, kind, object string, want ...string) {
	t.Helper()
	var got []string
	for _, p := range problems {
		got = append(got, p.GetField())
		if p.GetSource() != "test" || p.GetKind() != kind || p.GetObject() != object || p.GetMessage() == "" {
			t.Errorf("incomplete error: %v", p)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of the errors (-want +got):\n%s%v", diff, problems)
	}
}
