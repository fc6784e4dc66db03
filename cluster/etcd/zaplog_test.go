package etcd

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"
)

func TestZapLogger(t *testing.T) {
	var out bytes.Buffer
	var closing atomic.Bool
	log := newZapLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})), &closing)
	log.With(zap.String("member", "m1")).Info("started", zap.Int("port", 7), zap.Error(errors.New("none")), zap.Strings("urls", []string{"a"}))
	log.Debug("chatter")
	log.Warn("slow")
	log.Error("broken")
	closing.Store(true)
	log.With(zap.Bool("closing", true)).Error("listener closed")
	got := out.String()
	for _, want := range []string{
		`level=DEBUG msg="etcd: started" member=m1 port=7 error=none urls=[a]`, `level=INFO msg="etcd: slow"`, `level=WARN msg="etcd: broken"`,
		`level=DEBUG msg="etcd: listener closed" closing=true`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "chatter") {
		t.Errorf("etcd's debugging is shown:\n%s", got)
	}
}

// TestZapFatalPanics shows that etcd cannot end the process.
func TestZapFatalPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	newZapLogger(nil, nil).Fatal("the end")
}
