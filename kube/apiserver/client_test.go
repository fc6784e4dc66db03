package apiserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/troupe-vpp/troupe/kube/apiserver"
)

// recorder is an API server that records its requests, and answers each with an object of the
// requested kind.
type recorder struct{ requests []string }

// ServeHTTP satisfies http.Handler.
func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	query := request.URL.Query()
	query.Del("timeout") // request of the client, which the clientset sends as well
	h := request.Header
	r.requests = append(r.requests, fmt.Sprintf("%s %s?%s agent=%s token=%s type=%s accept=%s %q %v", request.Method, request.URL.Path, query.Encode(),
		h.Get("User-Agent"), h.Get("Authorization"), h.Get("Content-Type"), h.Get("Accept"), body, err))
	kinds := map[string]string{
		"services": `v1","kind":"Service`, "nodes": `v1","kind":"Node`, "pods": `v1","kind":"Pod`, "endpointslices": `discovery.k8s.io/v1","kind":"EndpointSlice`,
		"servicecidrs": `networking.k8s.io/v1","kind":"ServiceCIDR`, "events": `events.k8s.io/v1","kind":"Event`, "leases": `coordination.k8s.io/v1","kind":"Lease`,
	}
	w.Header().Set("Content-Type", "application/json")
	list := fmt.Sprintf(`{"apiVersion":"%sList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"x"}}]}`, kinds[path.Base(request.URL.Path)])
	one := func(plural string) string {
		return fmt.Sprintf(`{"apiVersion":"%s","metadata":{"name":"x"}}`, kinds[plural])
	}
	switch {
	case query.Has("watch"):
		_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`, one(path.Base(request.URL.Path)))
	case request.Method == http.MethodGet:
		_, _ = io.WriteString(w, list)
	case request.Method == http.MethodPost:
		_, _ = io.WriteString(w, one(path.Base(request.URL.Path)))
	case request.Method == http.MethodPatch:
		_, _ = io.WriteString(w, one(path.Base(path.Dir(request.URL.Path))))
	default:
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Conflict","code":409}`)
	}
}

// use sends every request of a client and returns the answers.
func use(t *testing.T, client *apiserver.Client) (answers []any) {
	t.Helper()
	answer := func(object any, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		answers = append(answers, object)
	}
	ctx, seconds := t.Context(), int64(400)
	listing := metav1.ListOptions{LabelSelector: "!a", FieldSelector: "b!=c", ResourceVersion: "0", Limit: 500}
	watching := metav1.ListOptions{LabelSelector: "!a", FieldSelector: "b!=c", ResourceVersion: "7", AllowWatchBookmarks: true, TimeoutSeconds: &seconds}
	for _, api := range []cache.ListerWatcherWithContext{client.Services, client.EndpointSlices, client.Nodes, client.Pods, client.ServiceCIDRs} {
		answer(api.ListWithContext(ctx, listing))
		w, err := api.WatchWithContext(ctx, watching)
		if err != nil {
			t.Fatal(err)
		}
		answer((<-w.ResultChan()).Object, nil)
		w.Stop()
	}
	meta := metav1.ObjectMeta{Name: "x"}
	events, leases := client.Events("shop"), client.Leases("troupe-system")
	answer(events.Create(ctx, &eventsv1.Event{ObjectMeta: meta, EventTime: metav1.NewMicroTime(time.Unix(1, 0)), Note: "boom"}, metav1.CreateOptions{}))
	answer(leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, metav1.CreateOptions{FieldManager: "m"}))
	answer(leases.Patch(ctx, "x", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}))
	answer(leases.List(ctx, listing))
	w, err := leases.Watch(ctx, watching)
	if err != nil {
		t.Fatal(err)
	}
	answer((<-w.ResultChan()).Object, nil)
	w.Stop()
	version := "7"
	err = leases.Delete(ctx, "x", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
	if !apierrors.IsConflict(err) {
		t.Errorf("deletion: %v, want a conflict", err)
	}
	return answers
}

// TestSameRequestsAsTheClientset: the golden file has the requests of the clientset of client-go
// 0.37.2 and its decoded answers. The client sends the same method, path, parameters, headers and
// body, and decodes the same answers.
func TestSameRequestsAsTheClientset(t *testing.T) {
	api := &recorder{}
	server := httptest.NewServer(api)
	defer server.Close()
	client, err := apiserver.New(&rest.Config{Host: server.URL, BearerToken: "t", UserAgent: "u", QPS: 1000, Burst: 100, ContentConfig: rest.ContentConfig{
		ContentType: "application/vnd.kubernetes.protobuf", AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
	}})
	if err != nil {
		t.Fatal(err)
	}
	answers := use(t, client)
	for _, answer := range answers {
		text, err := json.Marshal(answer)
		api.requests = append(api.requests, fmt.Sprintf("%T %s %v", answer, text, err))
	}
	got := strings.Join(api.requests, "\n") + "\n"
	want, err := os.ReadFile("testdata/requests.golden")
	if diff := cmp.Diff(string(want), got); diff != "" || err != nil {
		t.Errorf("requests and answers (-want +got): %v\n%s", err, diff)
	}
}
