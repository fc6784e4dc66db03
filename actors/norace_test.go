//go:build !race

package actors

// slow is how many times slower this build is: campaigns are that much shorter.
const slow = 1
