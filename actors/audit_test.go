package actors

import (
	"testing"
	"time"

	"github.com/troupe-vpp/troupe/messages"
)

func TestAuditAsksForAVerificationInItsInterval(t *testing.T) {
	perform(t, PathAudit, nil, func(s *stage) {
		s.run(10*s.deps.Timing.Audit + time.Second)
		s.kill()
		s.run(5 * s.deps.Timing.Audit)
		if n := len(all[*messages.Verify](s, PathRenderer("nat44"))); n != 15 && n != 14 {
			t.Errorf("asked %d times in 15 intervals", n)
		}
	})
}
