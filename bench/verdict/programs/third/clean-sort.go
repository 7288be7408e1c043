// Sorts records and merges equal ones: well made, nothing to mend.
package main

import (
	"fmt"
	"os"
	"slices"
)

type record struct {
	key   uint32
	value int32
}

func merge(records []record) []record {
	slices.SortFunc(records, func(a, b record) int {
		if a.key < b.key {
			return -1
		}
		if a.key > b.key {
			return 1
		}
		return 0
	})
	out := records[:0]
	for _, one := range records {
		if len(out) > 0 && out[len(out)-1].key == one.key {
			out[len(out)-1].value += one.value
		} else {
			out = append(out, one)
		}
	}
	return out
}

func main() {
	records := make([]record, 1000000)
	state := uint32(1)
	total := int64(0)
	for round := 0; round < 8; round++ {
		all := records[:cap(records)]
		for i := range all {
			state = state*1664525 + 1013904223
			all[i] = record{state >> 9, int32(i)}
		}
		for _, one := range merge(all) {
			total += int64(one.value) % 7
		}
	}
	fmt.Fprintln(os.Stderr, total)
}
