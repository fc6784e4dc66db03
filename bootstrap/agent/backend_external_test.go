package agent

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/actors/external"
)

// TestExternalCommandAnswersInTime: the client gets the reason why a command failed, not only the
// timeout of its request.
func TestExternalCommandAnswersInTime(t *testing.T) {
	if external.Deadline+time.Second > commandTimeout {
		t.Errorf("a command may take %v, a request %v", external.Deadline, commandTimeout)
	}
}
