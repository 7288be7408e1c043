// Clean: counts words of a text in a map, without a conversion or an allocation for a word that is known.
package main

import (
	"fmt"
	"os"
)

func main() {
	text := make([]byte, 0, 1<<20)
	seed := uint32(1)
	for len(text) < 1<<20-16 {
		seed = seed*1664525 + 1013904223
		for n := 2 + seed>>29; n > 0; n-- {
			text = append(text, 'a'+byte(seed>>(4*n)&7))
		}
		text = append(text, ' ')
	}
	counts := map[string]*int{}
	for round := 0; round < 60; round++ {
		begin := 0
		for at, c := range text {
			if c != ' ' {
				continue
			}
			if count, ok := counts[string(text[begin:at])]; ok {
				*count++
			} else {
				counts[string(text[begin:at])] = new(int)
			}
			begin = at + 1
		}
	}
	fmt.Fprintln(os.Stderr, len(counts))
}
