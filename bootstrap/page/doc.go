// Package page is the web page of the agent: documents that the server renders from embedded
// templates, with one style and one script. They show the data of the JSON API. They cannot change
// anything, because the page sends no state-changing call.
//
// Handler is Config.Page of package api/server. It reads its Source for each document and keeps
// nothing; it is safe for concurrent use. A stream of server-sent events tells the script when the
// journal has grown; the script then loads the document again. Without the script the documents are
// the same.
//
// Cluster is the page of all nodes that `troupe status --serve` serves.
package page
