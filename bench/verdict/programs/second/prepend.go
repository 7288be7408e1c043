// Puts each new entry at the front of a slice, which moves all others; the fix appends and turns it round once.
package main

import (
	"fmt"
	"os"
)

//go:noinline
func history(count int, after bool) []int {
	var entries []int
	for i := 0; i < count; i++ {
		if after {
			entries = append(entries, i)
		} else {
			entries = append([]int{i}, entries...) // SLOW
		}
	}
	if after {
		for i, j := 0, len(entries)-1; i < j; i, j = i+1, j-1 {
			entries[i], entries[j] = entries[j], entries[i]
		}
	}
	return entries
}

func main() {
	entries := history(60000, os.Args[1] == "after")
	fmt.Fprintln(os.Stderr, len(entries), entries[0])
}
