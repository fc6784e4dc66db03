package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestConfigDefaults(t *testing.T) {
	c := Config{NodeName: "n1"}.withDefaults()
	if err := c.validate(); err != nil {
		t.Fatalf("defaults are invalid: %v", err)
	}
	if c.GracePeriod != 10*time.Minute || c.BackoffMax != 500*time.Millisecond || c.Now == nil {
		t.Errorf("defaults not filled in: %+v", c)
	}
	for prefix, want := range map[string]string{"": DefaultPrefix, "/": DefaultPrefix, "/other/": "/other"} {
		if got := NewEtcdStore(nil, prefix).traits().layout; got != (etcdLayout{want}) {
			t.Errorf("prefix %q makes the layout %v", prefix, got)
		}
	}
}

func TestConfigInvalid(t *testing.T) {
	for name, c := range map[string]Config{
		"no name":         {},
		"slash in name":   {NodeName: "a/b"},
		"blank in name":   {NodeName: "a b"},
		"foreign letters": {NodeName: "knöten"},
		"long name":       {NodeName: strings.Repeat("n", 254)},
		"negative grace":  {NodeName: "n1", GracePeriod: -time.Second},
		"crossed backoff": {NodeName: "n1", BackoffMin: time.Minute, BackoffMax: time.Second},
	} {
		if err := New(NewEtcdStore(nil, ""), c, nil).Run(context.Background(), nil); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: Run returned %v, want ErrConfig", name, err)
		}
	}
	if err := New(NewLeaseStore(newLeaseServer(t).Client("ns"), "ns"), Config{NodeName: "troupe-id-1"}, nil).Run(context.Background(), nil); !errors.Is(err, ErrConfig) {
		t.Errorf("a name that is that of the lease of an ID: Run returned %v, want ErrConfig", err)
	}
}
