package files

// Limits of one stream, beside the limits of strictyaml. They are far above what clusters hold and
// low enough that a hostile file cannot take the agent down.
const (
	maxStream   = 512 << 20 // bytes of a stream
	maxFile     = 128 << 20 // bytes of a file in the directory, which is read as a whole
	maxDocument = 64 << 20  // bytes of one document: a dump of a cluster is one document
	maxObject   = 4 << 20   // bytes of one object as JSON; etcd refuses more than 1.5 MiB
	maxLists    = 3         // nesting of Lists
	maxErrors   = 1000      // errors reported for one stream; the rest is counted
)
