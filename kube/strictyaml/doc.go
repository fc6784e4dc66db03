// Package strictyaml reads YAML and JSON strictly: Decoder reads documents of known fields, JSON
// rewrites a document of any form as JSON. An error has its line and, with a Decoder, its path.
//
//	Parse -> Node -> Decoder.Read(Object{...}) -> values and Problems
//	              -> Budget.JSON               -> a decoder of JSON
//
// Unknown fields, duplicate keys and values of the wrong type are problems. A Decoder goes on after
// a problem, so that the user sees all of them at once.
//
// Input may be hostile: a few bytes of aliases and merges ("<<") could expand to gigabytes or form
// a cycle. A Budget bounds the work, which is linear in the length of the input. Without a Budget,
// aliases are problems. Texts of the input are quoted and cut in messages.
//
// The package holds no state and starts no goroutine. A Decoder or Budget belongs to one goroutine.
package strictyaml
