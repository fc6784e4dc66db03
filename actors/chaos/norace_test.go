//go:build !race

package chaos

// slow is the factor by which this build is slower: campaigns are shorter by it.
const slow = 1
