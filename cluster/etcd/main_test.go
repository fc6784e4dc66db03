package etcd_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the longest time that a test waits for an expected event. No test asserts how soon it
// happens.
const patience = 60 * time.Second
