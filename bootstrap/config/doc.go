// Package config is the versioned configuration of the agent: one document of kind
// AgentConfiguration, its defaults, its check and its explanation.
//
//	file --Decode--> Agent --flags override--> Agent --Validate--> immutable
//
// The structs in types.go are the only source. Their json tags name the fields in a file. Their Go
// comments are the explanations, because Explain reads the embedded types.go. So both are always
// current.
//
// Decoding is strict. An unknown field, a value of the wrong type and a duplicate key are errors,
// each with its line and its path. One call reports all of them. A field that is absent keeps its
// default. A list in a file replaces the default list.
//
// The package starts no goroutine and holds no state. It reads only the file of --config.
package config
