package page_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/troupe-vpp/troupe/bootstrap/page"
)

// get asks for a path.
func get(path string) *http.Response {
	w := httptest.NewRecorder()
	page.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Result()
}

func TestHandler(t *testing.T) {
	for path, tt := range map[string]struct {
		code       int
		kind, part string
	}{
		"/":             {200, "text/html; charset=utf-8", "<title>Troupe</title>"},
		"/page.js":      {200, "text/javascript; charset=utf-8", `"use strict"`},
		"/page.css":     {200, "text/css; charset=utf-8", "color-scheme"},
		"/index.html":   {404, "text/plain; charset=utf-8", "no such page: /index.html"},
		"/web/page.js":  {404, "text/plain; charset=utf-8", "no such page"},
		"/page.js/x":    {404, "text/plain; charset=utf-8", "no such page"},
		"/../page.go":   {404, "text/plain; charset=utf-8", "no such page"},
		"/%3Cscript%3E": {404, "text/plain; charset=utf-8", "no such page"},
	} {
		r := get(path)
		body := new(strings.Builder)
		if err := r.Write(body); err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != tt.code || r.Header.Get("Content-Type") != tt.kind || !strings.Contains(body.String(), tt.part) {
			t.Errorf("%s: %d %s\n%s", path, r.StatusCode, r.Header.Get("Content-Type"), body)
		}
		if tt.code == 200 && !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: policy %q", path, r.Header.Get("Content-Security-Policy"))
		}
	}
}

// TestNothingFromOutside: the page works where there is no Internet, text goes in as text, and what it refers to is there.
func TestNothingFromOutside(t *testing.T) {
	refers := regexp.MustCompile(`(?:src|href)="(/[^"]*)"`)
	for _, path := range []string{"/", "/page.js", "/page.css"} {
		text := new(strings.Builder)
		if err := get(path).Write(text); err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("} {
			if strings.Contains(text.String(), bad) {
				t.Errorf("%s has %s", path, bad)
			}
		}
		for _, found := range refers.FindAllStringSubmatch(text.String(), -1) {
			if r := get(found[1]); r.StatusCode != 200 {
				t.Errorf("%s refers to %s: %d", path, found[1], r.StatusCode)
			}
		}
	}
}
