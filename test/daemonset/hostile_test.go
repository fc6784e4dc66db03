package daemonset_test

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/troupe-vpp/troupe/test/controlplane"
)

// user creates a service account with rights in the namespace of the agents, and returns a
// kubeconfig of it and its token.
func (c *cluster) user(name string, rules ...rbacv1.PolicyRule) (kubeconfig, token string) {
	c.Helper()
	ctx, meta := context.Background(), metav1.ObjectMeta{Name: name, Namespace: namespace}
	_, err := c.Admin.CoreV1().ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})
	if err == nil {
		_, err = c.Admin.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
	}
	if err == nil {
		_, err = c.Admin.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: namespace}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		c.Fatalf("create user %s: %v", name, err)
	}
	token = c.Token(namespace, name, name)
	return c.Kubeconfig(name, "token: "+token), token
}

// allow is a rule for a resource of the core group.
func allow(verb, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{verb}}
}

// troupe runs a command on the machine of an operator, and returns its output and its errors. They
// have no characters that control a terminal.
func (c *cluster) troupe(kubeconfig string, args ...string) string {
	c.Helper()
	out, err := exec.CommandContext(c.Context(), c.Program, append(args, "--kubeconfig", kubeconfig)...).CombinedOutput()
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		c.Fatal(err)
	}
	return c.plain(string(out))
}

// plain checks that a text does not control a terminal.
func (c *cluster) plain(text string) string {
	c.Helper()
	if at := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); at >= 0 {
		c.Errorf("control character %q in %q", text[at], text)
	}
	return text
}

// operator: the agents as the manifests install them answer a user who may list pods and create
// pods/portforward, and no other.
func operator(c *cluster) {
	looker, _ := c.user("looker", allow("list", "pods"), allow("create", "pods/portforward"))
	lister, _ := c.user("lister", allow("list", "pods"))
	nobody, _ := c.user("nobody")
	admin := c.Kubeconfig("admin", controlplane.Credentials)
	controlplane.Eventually(c, "rights of the users", func() string {
		if out := c.troupe(looker, "status", "--all-nodes"); strings.Contains(out, "forbidden") {
			return out
		}
		return ""
	})
	for _, tt := range []struct {
		kubeconfig string
		command    string
		want       string
	}{
		{looker, "status --all-nodes", "node1"},
		{looker, "get services --node node2", "shop/web"},
		{looker, "explain shop/web --node node1", "shop/web"},
		{looker, "actors show agent/world --node node1", "agent/world"},
		{looker, "trace --limit 3 --follow=false --node node1", "agent/world"},
		{looker, "get nodes -o json --node node1", `"node2"`},
		{admin, "get resync --node node1", "nat44"},
		{lister, "get services --node node1", `cannot create resource "pods/portforward" in API group "" in the namespace "troupe-system"`},
		{lister, "status --all-nodes", `cannot create resource "pods/portforward"`},
		{nobody, "get services --node node1", `cannot list resource "pods"`},
		{looker, "get services --node node9", "find the agent of node node9 in namespace troupe-system: no pod with the label app.kubernetes.io/name=troupe-agent runs there"},
		{looker, "get services --node node1 --address 127.0.0.1:9", "nothing listens on port 9 of the node's loopback"},
	} {
		if out := c.troupe(tt.kubeconfig, strings.Fields(tt.command)...); !strings.Contains(out, tt.want) {
			c.Errorf("%s: %s\nwant %s", tt.command, out, tt.want)
		}
	}
}

// answers of a hostile agent, and the reason in its line of status; "" = it says only lies about
// itself. A silent node has its own line after its share of the time.
var hostileAnswers = []struct {
	name, why string
	answer    func(thief string) http.HandlerFunc
}{
	{"name of another node", `it has the name "node1"`, says(`{"node":"node1","ready":true}`)},
	{"path", `it has the name "../../node1"`, says(`{"node":"../../node1","ready":true,"items":[{"namespace":"../..","name":"x"}]}`)},
	{"redirect", "redirects elsewhere", func(thief string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, thief, http.StatusTemporaryRedirect) }
	}},
	{"escapes", "", says(`{"node":"node3","ready":true,"version":"\u001b[2J\u009b31m","reason":"\u001b]0;x\u0007","items":[{"namespace":"a","name":"\u001b[2J"}],"next":"\u001b"}`)},
	{"no HTTP", "malformed HTTP", func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_, _ = io.WriteString(conn, "\x1b[2J\x1b]0;x\x07 200 OK\r\n\r\n")
				_ = conn.Close()
			}
		}
	}},
	{"error", "Teapot", func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, "{\"error\":\"Teapot \\u001b[2J\\n node1 no\"}")
		}
	}},
	{"without end", "above the limit of size", func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for text := []byte(strings.Repeat(" ", 1<<16)); r.Context().Err() == nil; {
				if _, err := w.Write(text); err != nil {
					return
				}
			}
		}
	}},
	{"silence", "no answer in time", func(string) http.HandlerFunc {
		return func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	}},
}

// says answers everything with a text.
func says(text string) func(string) http.HandlerFunc {
	return func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
}

// hostileNode: root of a third node answers in the place of its agent. Whatever it answers, every
// command shows the other two nodes as they are and an error for the third one, and gives it no
// token.
func hostileNode(c *cluster) {
	set, err := c.Admin.AppsV1().DaemonSets(namespace).Get(context.Background(), daemonSet, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	kubeconfig, token := c.user("operator", allow("list", "pods"), allow("create", "pods/portforward"))
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { c.Errorf("the thief got %s", r.URL) }))
	c.Cleanup(thief.Close)
	var answer atomic.Value
	answer.Store(says("")(""))
	c.occupy(set, func(w http.ResponseWriter, r *http.Request) {
		if text := fmt.Sprint(r.URL, r.Header); r.Header.Get("Authorization") != "" || strings.Contains(text, token) {
			c.Errorf("the hostile agent got the token: %s", text)
		}
		if strings.HasPrefix(r.UserAgent(), "kube-probe/") {
			return
		}
		answer.Load().(http.HandlerFunc)(w, r)
	})
	for _, h := range hostileAnswers {
		answer.Store(h.answer(thief.URL))
		c.lines(h.name, h.why, c.troupe(kubeconfig, "status", "--all-nodes", "--timeout", "20s"))
		c.checked(h.name, h.why, c.troupe(kubeconfig, "check", "--all-nodes", "-o", "json", "--vpp-api-socket", "none", "--timeout", "20s"))
		c.lines(h.name, h.why, c.served(kubeconfig))
		file := filepath.Join(c.T.TempDir(), "dump.tar.gz")
		if out := c.troupe(kubeconfig, "sysdump", "--file", file, "--timeout", "30s", "--size-limit", "16"); !strings.Contains(out, "of 3 nodes") || !strings.Contains(out, h.why) {
			c.Errorf("%s: sysdump: %s", h.name, out)
		}
		c.archived(h.name, file, h.why == "")
		if h.name == "silence" {
			continue // each command takes 15 s
		}
		for _, command := range []string{
			"get services", "get service shop/web", "get interfaces", "get nodes", "get sessions", "get actors", "get tree", "get resync", "get diff", "events", "explain shop/web",
			"actors show agent/world", "external list", "trace --limit 3 --follow=false", "status",
		} {
			c.troupe(kubeconfig, append(strings.Fields(command), "--node", c.third.Name)...)
		}
	}
}

// occupy makes a node of the third machine, whose pod of the agent is Ready and runs another
// program. The handler answers at the agent's address.
func (c *cluster) occupy(set *appsv1.DaemonSet, handler http.HandlerFunc) {
	c.Helper()
	listener, err := c.third.Listen("127.0.0.1:9990")
	if err != nil {
		c.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	c.Cleanup(func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	c.third.Join(agentOf(set).Image)
	c.Nodes = append(c.Nodes[:2:2], c.third)
	c.RolledOut()
}

// lines checks the lines of a status: the two other nodes are ready, and the third one has the
// reason, or ? instead of what it says.
func (c *cluster) lines(name, why, out string) {
	c.Helper()
	have := map[string]string{}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 1 {
			have[words[0]] += strings.Join(words[1:], " ")
		}
	}
	third := have["node3"]
	if !strings.HasPrefix(have["node1"], "yes ") || !strings.HasPrefix(have["node2"], "yes ") || !strings.Contains(third, why) || (why != "") != strings.HasPrefix(third, "unknown ") {
		c.Errorf("%s: %s\nwant node1 and node2 ready, and node3 %s", name, out, why)
	}
}

// served is the page of `troupe status --serve` as the lines of a status.
func (c *cluster) served(kubeconfig string) string {
	c.Helper()
	cmd := exec.CommandContext(c.Context(), c.Program, "status", "--all-nodes", "--serve", "127.0.0.1:0", "--kubeconfig", kubeconfig, "--timeout", "20s")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	line, _ := bufio.NewReader(out).ReadString('\n')
	_, rest, _ := strings.Cut(line, "http://")
	address, _, _ := strings.Cut(rest, "/")
	answer, err := http.Get("http://" + address + "/")
	if err != nil {
		c.Fatalf("%s: %v", line, err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		c.Fatal(err)
	}
	text := strings.NewReplacer("<tr>", "\n", "</tr>", "\n", "&#34;", `"`).Replace(c.plain(string(page)))
	var lines strings.Builder
	for tag := range strings.SplitSeq(text, "<") {
		if _, content, is := strings.Cut(tag, ">"); is {
			tag = content
		}
		lines.WriteString(" " + tag)
	}
	return lines.String()
}

// checked checks the lines of `troupe check`.
func (c *cluster) checked(name, why, out string) {
	c.Helper()
	var lines []struct{ Check, State, Found string }
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&lines); err != nil {
		c.Fatalf("%s: %v: %s", name, err, out)
	}
	have := map[string]string{}
	for _, l := range lines {
		have[l.Check] = l.State + " " + l.Found
	}
	third := have["agent of node node3"]
	if !strings.Contains(have["agent of node node1"], " ready; ") || !strings.Contains(have["agent of node node2"], " ready; ") ||
		!strings.Contains(third, why) || (why != "") != strings.HasPrefix(third, "failed ") {
		c.Errorf("%s: %s", name, out)
	}
}

// archived checks the names of an archive: nodes that have answered have their directories.
func (c *cluster) archived(name, file string, third bool) {
	c.Helper()
	f, err := os.Open(file)
	if err != nil {
		c.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		c.Fatal(err)
	}
	have := map[string]bool{}
	for files := tar.NewReader(packed); ; {
		head, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.Fatal(err)
		}
		parts := strings.Split(head.Name, "/")
		if head.Typeflag != tar.TypeReg || strings.Contains(head.Name, "..") || len(parts) == 3 != (parts[0] == "nodes") {
			c.Errorf("%s: the archive has %q", name, head.Name)
		}
		if len(parts) == 3 {
			have[parts[1]] = true
		}
	}
	if !have["node1"] || !have["node2"] || have["node3"] != third || len(have) > 3 {
		c.Errorf("%s: the archive has nodes %v", name, have)
	}
}
