// Package page is the web page of the agent: one document, its script and its style, embedded. It reads the JSON API that the same server
// answers, so it shows nothing that `troupe get` does not, and it can change nothing: the server it comes from is read-only.
//
// Handler is given to package api as Config.Page. The page asks only while somebody looks at it, and only for the part that is shown.
package page
