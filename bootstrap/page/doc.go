// Package page is the web page of the agent: one document, its script and its style, embedded. It reads the JSON API that the same server
// answers, so it shows nothing that `troupe get` does not, and it can change nothing: the server it comes from is read-only.
//
// Handler is Config.Page of package api. The page sends requests only while it is visible, and only for the visible part.
package page
