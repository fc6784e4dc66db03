package strictyaml

import (
	"fmt"
	"strings"
)

// Suggestion names the known field that differs least, by case or by at most two characters, as the
// end of an error; "" = there is none.
func Suggestion(got string, known []string) string {
	best, least := "", 3
	for _, name := range known {
		// Of two characters everything could differ.
		if d := distance(strings.ToLower(name), strings.ToLower(got)); d < min(least, len(name)) {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance is the Levenshtein distance of two words; words of more than 40 bytes count as entirely
// different.
func distance(a, b string) int {
	if len(a) > 40 || len(b) > 40 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost++
			}
			diagonal, row[j] = row[j], min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
