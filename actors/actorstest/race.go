//go:build race

package actorstest

// Slow is how many times slower this build is. Campaigns are shorter by this factor.
const Slow = 6
