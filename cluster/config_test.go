package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestConfigDefaults(t *testing.T) {
	c := Config{NodeName: "n1", Prefix: "/other/"}.withDefaults()
	if err := c.validate(); err != nil {
		t.Fatalf("defaults are invalid: %v", err)
	}
	if c.Prefix != "/other" || c.GracePeriod != DefaultGracePeriod || c.BackoffMax != DefaultBackoffMax || c.Now == nil || c.Rand == nil {
		t.Errorf("defaults not filled in: %+v", c)
	}
	if got := (Config{Prefix: "/"}).withDefaults().Prefix; got != DefaultPrefix {
		t.Errorf("prefix / became %q, want the default", got)
	}
}

func TestConfigInvalid(t *testing.T) {
	for name, c := range map[string]Config{
		"no name":         {},
		"slash in name":   {NodeName: "a/b"},
		"blank in name":   {NodeName: "a b"},
		"foreign letters": {NodeName: "knöten"},
		"long name":       {NodeName: strings.Repeat("n", 254)},
		"relative prefix": {NodeName: "n1", Prefix: "troupe"},
		"negative grace":  {NodeName: "n1", GracePeriod: -time.Second},
		"crossed backoff": {NodeName: "n1", BackoffMin: time.Minute, BackoffMax: time.Second},
	} {
		if err := New(nil, c, nil).Run(context.Background(), nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: Run returned %v, want ErrConfig", name, err)
		}
	}
}
