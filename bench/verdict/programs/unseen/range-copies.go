// Goes over large records by value, each copied for one field; the fix takes their addresses.
package main

import (
	"fmt"
	"os"
)

type record struct {
	id      int
	payload [1016]byte
}

//go:noinline
func size(r record) int { return r.id + int(r.payload[r.id%1000]) }

//go:noinline
func sizeAt(r *record) int { return r.id + int(r.payload[r.id%1000]) }

//go:noinline
func total(records []record, after bool) int {
	sum := 0
	for i := range records {
		if after {
			sum += sizeAt(&records[i])
		} else {
			sum += size(records[i]) // SLOW
		}
	}
	return sum
}

func main() {
	records := make([]record, 500)
	for i := range records {
		records[i].id = i
	}
	sum := 0
	for round := 0; round < 60000; round++ {
		sum += total(records, os.Args[1] == "after")
	}
	fmt.Fprintln(os.Stderr, sum)
}
