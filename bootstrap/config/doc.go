// Package config is the versioned configuration of the agent: one document of kind AgentConfiguration, its defaults, its check and its
// explanation.
//
//	file --Decode--> Agent --flags override--> Agent --Validate--> used, never changed again
//
// The structs in types.go are the only source: names of the fields in a file are their json tags, explanations are their Go comments
// (types.go is embedded and read by Explain), so neither can grow stale.
//
// Decoding is strict. A field that does not exist, a value of the wrong type, a key that stands twice: each is an error with its line and
// its path, and all of them are reported at once. A field that is absent keeps its default. A list in a file replaces the default list.
//
// The package starts no goroutine, reads no file but through its caller and holds no state.
package config
