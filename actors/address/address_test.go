package address

import (
	"slices"
	"strings"
	"testing"
)

// TestServicePaths: a key of any characters is one segment of a path, and comes back.
func TestServicePaths(t *testing.T) {
	for _, key := range []string{
		"default/web",
		"a/b",
		"name.space/w%2Feb",
		"default/with space",
	} {
		path := Service(key)
		if got, ok := ServiceKey(path); !ok || got != key {
			t.Errorf("%s has the path %s, which is that of %q, %t", key, path, got, ok)
		}
		if Supervisor(path) != Services || strings.Count(path, "/") != strings.Count(Services, "/")+1 {
			t.Errorf("%s: the supervisor of %s is %s", key, path, Supervisor(path))
		}
	}
	for _, path := range []string{"", Services, Registry, Renderer("nat44"), "agent/world/services2/a%2Fb"} {
		if key, ok := ServiceKey(path); ok {
			t.Errorf("%s is the path of service %q", path, key)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Renderer("nat44"), "agent/dataplane/nat44"},
		{Part("nat44"), "agent/dataplane/nat44"},
		{Part("link"), Link},
		{Part("interfaces"), Interfaces},
		{Part("watch"), Registry},
		{Part("registry"), Registry},
		{Part("nodes"), Nodes},
		{Part("external"), External},
		{Part("sessions"), Sessions},
		{Supervisor(RootName), ""},
		{Supervisor(Healer), RootName},
		{Supervisor(Renderer("nat44")), Dataplane},
		{Supervisor(Registry), World},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
}

func TestNamed(t *testing.T) {
	all := []string{Registry, Services, Service("shop/nat44"), Service("shop/web"), Renderer("nat44"), "agent/other/registry"}
	for name, want := range map[string][]string{
		Registry:     {Registry},
		"shop/web":   {Service("shop/web")},
		"nat44":      {Renderer("nat44")},
		"registry":   {Registry, "agent/other/registry"},
		"shop/other": nil,
		"at44":       nil,
	} {
		if got := Named(name, all, strings.Clone); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
