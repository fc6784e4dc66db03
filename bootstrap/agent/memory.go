package agent

import "math"

// ownMemory is what the agent needs besides the frontends and backends of services, in bytes: the
// runtime, the objects of the cluster, HTTP.
const ownMemory = 100 << 20

// memoryRoom returns how many bytes services may take of a process whose garbage collector keeps to
// a limit; 0 = it has none.
func memoryRoom(limit int64) int {
	if limit == math.MaxInt64 {
		return 0
	}
	return int(max(limit-ownMemory, 1<<20))
}
