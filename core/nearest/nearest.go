// Package nearest finds the known word that a mistyped one most likely meant.
package nearest

import "strings"

// Word returns the candidate closest to word, "" where none is close: at most a third of the word's characters may
// differ (at least one), counting insertions, deletions, substitutions and swapped neighbours. Case is not counted.
// Of equally close candidates the first wins.
func Word(word string, candidates []string) string {
	word = strings.ToLower(word)
	if len(word) > 256 {
		return ""
	}
	limit := max(1, len(word)/3)
	best := ""
	for _, c := range candidates {
		if d := distance(word, strings.ToLower(c), limit); d <= limit {
			if limit = d - 1; limit < 0 {
				return c
			}
			best = c
		}
	}
	return best
}

// distance is the optimal string alignment distance of a and b, or a number above limit when it exceeds it.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before := make([]int, len(b)+1) // row i-2
	last := make([]int, len(b)+1)   // row i-1
	row := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
