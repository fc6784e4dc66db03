//go:build race

package actorstest

// Slow is how many times slower this build is: campaigns are that much shorter.
const Slow = 6
