//go:build race

package chaos

// slow is how many times slower this build is: campaigns are that much shorter.
const slow = 10
