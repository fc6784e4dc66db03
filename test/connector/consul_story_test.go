package connector_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestConsul: what instances do in a real Consul, and what Consul does.
func TestConsul(t *testing.T) {
	c := startConsul(t, "", "")
	c.register("web 80 192.0.2.1", "web 80 192.0.2.2", "db 5432 192.0.2.9", "cache 6379 192.0.2.20", "queue 5672 192.0.2.30", "again 80 192.0.2.40 k8s")
	d := c.connect("a", c.source())
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "queue 5672 192.0.2.30", "web 80 192.0.2.1 192.0.2.2")

	t.Log("A3: an instance turns critical, and passing again")
	begun := time.Now()
	c.put("agent/check/fail/192.0.2.2", nil)
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "queue 5672 192.0.2.30", "web 80 !192.0.2.2 192.0.2.1")
	t.Logf("critical after %s", time.Since(begun).Round(time.Millisecond))
	c.put("agent/check/warn/192.0.2.2", nil)
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "queue 5672 192.0.2.30", "web 80 192.0.2.1 192.0.2.2")

	t.Log("maintenance, of an instance and of the node")
	c.put("agent/service/maintenance/192.0.2.2?enable=true", nil)
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "queue 5672 192.0.2.30", "web 80 192.0.2.1 ~192.0.2.2")
	c.put("agent/service/maintenance/192.0.2.2?enable=false", nil)
	c.put("agent/maintenance?enable=true", nil)
	d.want("cache 6379 ~192.0.2.20", "db 5432 ~192.0.2.9", "queue 5672 ~192.0.2.30", "web 80 ~192.0.2.1 ~192.0.2.2")
	c.put("agent/maintenance?enable=false", nil)
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "queue 5672 192.0.2.30", "web 80 192.0.2.1 192.0.2.2")

	t.Log("a new instance, another address, an instance and a service that are deregistered")
	begun = time.Now()
	c.register("web 80 192.0.2.3")
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "queue 5672 192.0.2.30", "web 80 192.0.2.1 192.0.2.2 192.0.2.3")
	t.Logf("new instance after %s", time.Since(begun).Round(time.Millisecond))
	c.put("agent/service/deregister/192.0.2.3", nil)
	c.put("agent/service/deregister/192.0.2.30", nil)
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "web 80 192.0.2.1 192.0.2.2")

	t.Log("an instance without an address has that of its node, which changes")
	c.put("catalog/register", object{"Node": "machine", "Address": "192.0.2.50", "Service": object{"Service": "vm", "Port": 80}})
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "vm 80 192.0.2.50", "web 80 192.0.2.1 192.0.2.2")
	c.put("catalog/register", object{"Node": "machine", "Address": "192.0.2.51"})
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "vm 80 192.0.2.51", "web 80 192.0.2.1 192.0.2.2")
	c.put("catalog/deregister", object{"Node": "machine"})
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "web 80 192.0.2.1 192.0.2.2")

	t.Log("a check that has not been told for its TTL is critical, until it is told again")
	ttl := func(ttl string) {
		c.put("agent/service/register", object{
			"Name": "ttl", "ID": "ttl", "Address": "192.0.2.60", "Port": 80, "Check": object{"CheckID": "ttl", "TTL": ttl, "Status": "passing"},
		})
	}
	ttl("2s")
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "ttl 80 !192.0.2.60", "web 80 192.0.2.1 192.0.2.2")
	ttl("1h") // a check that is registered again keeps its status
	c.put("agent/check/pass/ttl", nil)
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "ttl 80 192.0.2.60", "web 80 192.0.2.1 192.0.2.2")
	c.put("agent/service/deregister/ttl", nil)
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "web 80 192.0.2.1 192.0.2.2")

	t.Log("at rest Consul is not asked but by queries that block")
	time.Sleep(time.Second)
	before := c.requests.Load()
	time.Sleep(3 * time.Second)
	if n := c.requests.Load() - before; n > 3 {
		t.Errorf("%d requests in three seconds, want 3 at most", n)
	}

	t.Log("A5: Consul is killed, the connector as well; nothing is deleted")
	c.agent.Kill()
	d.incomplete("Bad Gateway")
	d.Kill()
	d = c.connect("b", c.source())
	d.incomplete("Bad Gateway")
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "web 80 192.0.2.1 192.0.2.2")

	t.Log("A7, A19: it comes back empty, with an index that begins anew: what has vanished is held back; what comes back is followed")
	c.start()
	d.held("cache", "db", "web")
	c.register("web 80 192.0.2.7")
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.9", "web 80 192.0.2.7")
	c.register("db 5432 192.0.2.8", "cache 6379 192.0.2.20")
	d.want("cache 6379 192.0.2.20", "db 5432 192.0.2.8", "web 80 192.0.2.7")
	d.held()
}

// TestDNS: the DNS source with Consul as its server, which leaves out instances that are critical.
func TestDNS(t *testing.T) {
	c := startConsul(t, "", "")
	c.register("web 8080 192.0.2.1", "web 8081 192.0.2.2")
	server := "127.0.0.1:" + c.ports[1]
	d := c.connect("a", "a:dns=web.service.consul:80@"+server, "--source", "b:dns=_web._tcp.service.consul:443@"+server)
	d.want("service 443 192.0.2.1 192.0.2.2", "web 80 192.0.2.1 192.0.2.2")
	if ports := d.ports("service"); ports != "8080 8081" {
		t.Errorf("the instances have the ports %s", ports)
	}
	c.put("agent/check/fail/192.0.2.2", nil)
	d.want("service 443 192.0.2.1", "web 80 192.0.2.1")
	c.put("agent/check/fail/192.0.2.1", nil)
	d.want("service 443", "web 80")
	c.agent.Kill()
	d.incomplete("connection refused")
	d.want("service 443", "web 80")
}

// TestConsulAnswers: A6, A8, A18 and A29 on a real Consul behind a proxy that spoils answers.
func TestConsulAnswers(t *testing.T) {
	c := startConsul(t, "", "")
	c.register("web 80 192.0.2.1", "db 5432 192.0.2.9")
	d := c.connect("a", c.source())
	d.want("db 5432 192.0.2.9", "web 80 192.0.2.1")
	for _, s := range []struct {
		name, why string
		answer    http.HandlerFunc
	}{
		{"no answer in time", "context deadline exceeded", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
		{"garbage", "decode the services", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Consul-Index", "7")
			fmt.Fprint(w, "<html>")
		}},
		{"half an answer", "unexpected EOF", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Consul-Index", "7")
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"web": [`)
		}},
	} {
		t.Log(s.name)
		c.spoiled(func(w http.ResponseWriter, r *http.Request) bool {
			s.answer(w, r)
			return true
		})
		d.incomplete(s.why)
		d.want("db 5432 192.0.2.9", "web 80 192.0.2.1")
	}

	t.Log("A8: one service cannot be read, the others are followed")
	c.spoiled(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/health/service/db" {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	c.register("web 80 192.0.2.2", "db 5432 192.0.2.10")
	d.want("db 5432 192.0.2.9", "web 80 192.0.2.1 192.0.2.2")
	c.spoiled(nil)
	d.want("db 5432 192.0.2.10 192.0.2.9", "web 80 192.0.2.1 192.0.2.2")
	d.ready()
}

// TestConsulTokens: the token that is read from a file may be replaced; without one nothing is
// deleted.
func TestConsulTokens(t *testing.T) {
	const management = "6f1e2c8a-1b7c-4c57-9d3c-0f4f4a0b1c2d"
	c := startConsul(t, `acl { enabled = true default_policy = "deny" tokens { initial_management = "`+management+`" default = "" agent = "`+management+`" } }`, management)
	c.register("web 80 192.0.2.1")
	c.put("acl/policy", object{"Name": "read", "Rules": `service_prefix "" { policy = "read" } node_prefix "" { policy = "read" }`})
	token := func(policy string) (accessor, secret string) {
		var out struct{ AccessorID, SecretID string }
		if err := json.Unmarshal([]byte(c.put("acl/token", object{"Policies": []object{{"Name": policy}}})), &out); err != nil {
			t.Fatal(err)
		}
		return out.AccessorID, out.SecretID
	}
	file := filepath.Join(c.dir, "token")
	write := func(secret string) {
		if err := os.WriteFile(file+".new", []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	first, secret := token("read")
	write(secret)
	d := c.connect("a", c.source(), "--consul-token-file", file)
	d.want("web 80 192.0.2.1")

	t.Log("another token in the file, the first one is revoked")
	second, secret := token("read")
	write(secret)
	if _, err := c.call(http.MethodDelete, "acl/token/"+first, nil); err != nil {
		t.Fatal(err)
	}
	c.register("web 80 192.0.2.2")
	d.want("web 80 192.0.2.1 192.0.2.2")

	t.Log("A6: no token: Consul filters the answer, and does not say so")
	write("")
	c.spoiled(nil)
	d.incomplete("token is empty")
	anonymous := c.connect("anonymous", c.source())
	anonymous.incomplete("a token is needed")
	anonymous.Kill()
	t.Log("a token that may read some services only: Consul says that it has filtered the answer")
	c.put("acl/policy", object{"Name": "some", "Rules": `service_prefix "w" { policy = "read" } node_prefix "" { policy = "read" }`})
	_, some := token("some")
	write(some)
	d.incomplete("filtered by ACL")
	t.Log("a token that is revoked")
	write(secret)
	d.ready()
	if _, err := c.call(http.MethodDelete, "acl/token/"+second, nil); err != nil {
		t.Fatal(err)
	}
	c.spoiled(nil)
	d.incomplete("403")
	d.want("web 80 192.0.2.1 192.0.2.2")
	if text := strings.Join(d.have(), ""); strings.Contains(text, secret) {
		t.Error("the token is in a file")
	}
}
