package browser

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/troupe-vpp/troupe/test/build"
	"github.com/troupe-vpp/troupe/test/controlplane"
)

var (
	screenshots = flag.Bool("screenshots", false, "write the screenshots of docs")
	screens     = flag.String("screens", "", "directory for pictures of every view, at three widths in both schemes")
)

// hostile is text of a user of the cluster.
const hostile = `<img src=x onerror=alert(1)>`

// views are those of the navigation, and one of each kind below.
var views = []string{
	"/", "/tree", "/services", "/services/shop/web", "/actors", "/actors/agent/dataplane/nat44", "/interfaces", "/nodes", "/events", "/resync", "/diff", "/chaos", "/packet?source=10.1.1.3&destination=10.96.255.1:80/TCP",
}

// stage is an agent with a simulated VPP, and a browser.
type stage struct {
	*testing.T
	dir, address string
	tab          context.Context

	mu     sync.Mutex
	errors []string
}

// play starts an agent that serves so many services from a directory.
func play(t *testing.T, services int) *stage {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on PATH: apt-get install chromium")
	}
	dir, err := os.MkdirTemp("", "troupe") // short: paths of sockets are limited
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := build.Agent(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, dir: dir, address: free(t)}
	if err := os.Mkdir(filepath.Join(dir, "objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.write("node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {podCIDR: 10.1.1.0/24, podCIDRs: [10.1.1.0/24]}\nstatus: {addresses: [{type: InternalIP, address: 192.168.16.1}]}\n")
	var objects strings.Builder
	service(&objects, "web", "10.96.255.1", hostile)
	for i := range services - 1 {
		service(&objects, fmt.Sprintf("s%05d", i), fmt.Sprintf("10.%d.%d.%d", 100+i/62500, i/250%250, 1+i%250), "")
	}
	s.write("services.yaml", objects.String())
	controlplane.Spawn(t, dir, program, "agent", "--node-name", "n1", "--kube-source", "files:"+filepath.Join(dir, "objects"), "--vpp", "simulated", "--etcd", "none",
		"--data-dir", filepath.Join(dir, "data"), "--control-socket", filepath.Join(dir, "control.sock"), "--http-address", s.address, "--healthz-bind-address", "",
		"--service-cidr", "10.96.0.0/12", "--enable-chaos")
	s.eventually("ready", func() bool {
		answer, err := http.Get("http://" + s.address + "/readyz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	s.browse(chromium)
	return s
}

// browse starts the browser.
func (s *stage) browse(chromium string) {
	s.Helper()
	all, end := chromedp.NewExecAllocator(s.Context(), append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox)...)
	s.Cleanup(end)
	tab, end := chromedp.NewContext(all)
	s.Cleanup(end)
	s.tab = tab
	chromedp.ListenTarget(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			s.note("exception: " + e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			s.note(string(e.Entry.Level) + ": " + e.Entry.Text + " " + e.Entry.URL)
		case *page.EventJavascriptDialogOpening:
			s.note("dialog: " + e.Message)
		}
	})
	s.do(chromedp.EmulateViewport(1200, 900))
}

// note takes something down that must not happen.
func (s *stage) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errors = append(s.errors, what)
}

// do has the browser do something.
func (s *stage) do(actions ...chromedp.Action) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.tab, time.Minute)
	defer cancel()
	if s.tab.Err() == nil && chromedp.FromContext(s.tab).Target == nil {
		ctx = s.tab // the first one starts the browser, which lives as long as its context
	}
	if err := chromedp.Run(ctx, actions...); err != nil {
		s.Fatal(err)
	}
}

// open opens a view.
func (s *stage) open(path string) {
	s.Helper()
	s.do(chromedp.Navigate("http://"+s.address+path), chromedp.WaitVisible("main h2"))
}

// text is what a reader sees.
func (s *stage) text() (text string) {
	s.Helper()
	s.do(chromedp.Evaluate(`document.querySelector("main").innerText`, &text))
	return text
}

// eventually waits until something holds.
func (s *stage) eventually(what string, holds func() bool) {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%s: not in time", what)
		}
	}
}

// write writes a file of objects at once.
func (s *stage) write(name, content string) {
	s.Helper()
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(file, filepath.Join(s.dir, "objects", name)); err != nil {
		s.Fatal(err)
	}
}

// service writes a Service with one endpoint.
func service(to *strings.Builder, name, ip, annotation string) {
	fmt.Fprintf(to, `apiVersion: v1
kind: Service
metadata: {name: %s, namespace: shop, annotations: {"troupe.dev/load-balancing": '%s'}}
spec: {clusterIP: %s, ports: [{name: http, port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s-1, namespace: shop, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.2.3], nodeName: n2}]
---
`, name, annotation, ip, name, name)
}

// free is an address that nothing listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// kill fails an actor.
func (s *stage) kill(path string) {
	s.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(s.dir, "control.sock"))
	}}}
	answer, err := client.Post("http://agent/api/v1/actors/"+path+":kill", "application/json", nil)
	if err != nil {
		s.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		s.Fatalf("kill %s: %s", path, answer.Status)
	}
}

// TestPage: every view with few and with many services, live updates, a failure in the tree, text
// of users.
func TestPage(t *testing.T) {
	for _, services := range []int{10, 10_000} {
		t.Run(fmt.Sprint(services, " services"), func(t *testing.T) {
			s := play(t, services)
			for _, path := range views {
				began := time.Now()
				s.open(path)
				t.Logf("%-35s %4d ms", path, time.Since(began).Milliseconds())
				if text := s.text(); len(text) < 20 {
					t.Errorf("%s: %q", path, text)
				}
			}
			s.open("/services/shop/web")
			if text := s.text(); !strings.Contains(text, hostile) {
				t.Errorf("the service does not show its error: %s", text)
			}
			s.live(services)
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.errors) > 0 {
				t.Errorf("the browser says %q", s.errors)
			}
		})
	}
}

// live sees changes without loading a document again.
func (s *stage) live(services int) {
	s.Helper()
	s.open("/tree")
	s.do(chromedp.Evaluate(`window.same = true`, nil))
	began := time.Now()
	s.kill("agent/dataplane/routes")
	s.eventually("the failure in the tree", func() bool { return strings.Contains(s.text(), "#2, 1 failed") })
	s.Logf("a failure is in the tree after %d ms", time.Since(began).Milliseconds())
	s.open("/")
	s.do(chromedp.Evaluate(`window.same = true`, nil))
	var more strings.Builder
	service(&more, "new", "10.96.255.2", "")
	s.write("new.yaml", more.String())
	s.eventually("another service in the overview", func() bool { return strings.Contains(s.text(), fmt.Sprintf("%d in all", services+1)) })
	var same bool
	if s.do(chromedp.Evaluate(`window.same === true`, &same)); !same {
		s.Error("the document was loaded again")
	}
}

// TestScreenshots makes the pictures of docs, in both schemes.
func TestScreenshots(t *testing.T) {
	if !*screenshots {
		t.Skip("the pictures are made with -screenshots")
	}
	s := play(t, 40)
	for i := range 3 { // something to see
		s.kill("agent/world/services/shop~s00002")
		s.kill("agent/world/nodes")
		var changed strings.Builder
		service(&changed, "more", "10.96.255.2", "")
		s.write("more.yaml", strings.Replace(changed.String(), "10.1.2.3", fmt.Sprintf("10.1.2.%d], conditions: {ready: false}, nodeName: n3}, {addresses: [10.1.2.10%d", i, i), 1))
		s.eventually("the change", func() bool {
			s.open("/services/shop/more")
			return strings.Contains(s.text(), fmt.Sprintf("10.1.2.10%d:8080", i)) && strings.Contains(s.text(), "VPP holds what is wanted")
		})
	}
	time.Sleep(time.Minute) // the plots show whole minutes
	docs := filepath.Join(build.Root(), "docs", "page-")
	s.picture("/", "light", docs+"overview.png")
	s.picture("/tree", "dark", docs+"tree.png")
	s.picture("/services/shop/more", "light", docs+"service.png")
}

// picture makes a picture of a view.
func (s *stage) picture(path, scheme, file string) {
	s.Helper()
	var picture []byte
	s.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
	s.open(path)
	s.do(chromedp.CaptureScreenshot(&picture))
	if err := os.WriteFile(file, picture, 0o644); err != nil { //nolint:gosec // a document
		s.Fatal(err)
	}
}

// TestWidths: at three widths, in both schemes, no word of a view is divided: each address of a
// cell has one line. With -screens it leaves pictures.
func TestWidths(t *testing.T) {
	s := play(t, 15)
	for _, width := range []int64{1300, 800, 480} {
		s.do(chromedp.EmulateViewport(width, 1000))
		for _, path := range views {
			s.open(path)
			var divided []string
			s.do(chromedp.Evaluate(`Array.from(document.querySelectorAll("td:not(.text), .word, .path")).filter(e => e.children.length === 0 && !/\s/.test(e.textContent.trim()) && e.getClientRects().length > 0)
				.filter(e => { const r = document.createRange(); r.selectNodeContents(e); return new Set(Array.from(r.getClientRects()).map(b => Math.round(b.top))).size > 1 }).map(e => e.textContent)`, &divided))
			if len(divided) > 0 {
				t.Errorf("%s at %d pixels divides %q", path, width, divided)
			}
			for _, scheme := range []string{"light", "dark"} {
				if *screens != "" {
					name := strings.Map(func(r rune) rune {
						if strings.ContainsRune("/?=&:", r) {
							return '-'
						}
						return r
					}, path)
					s.picture(path, scheme, filepath.Join(*screens, fmt.Sprintf("view%s-%d-%s.png", name, width, scheme)))
				}
			}
		}
	}
}
