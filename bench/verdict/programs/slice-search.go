// Asks a slice of names whether a name is in it; the fix asks a map.
package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
)

type names struct {
	all []string
	set map[string]bool
}

// settle is the rest of the work: what a fix leaves.
//
//go:noinline
func settle(value uint64, steps int) uint64 {
	for ; steps > 0; steps-- {
		value ^= value << 13
		value ^= value >> 7
		value ^= value << 17
	}
	return value
}

//go:noinline
func blocked(known *names, name string) bool {
	if os.Args[1] == "after" {
		return known.set[name]
	}
	return slices.Contains(known.all, name) // SLOW
}

func main() {
	known := names{set: map[string]bool{}}
	for i := 0; i < 3000; i++ {
		name := "user" + strconv.Itoa(1000+i*3)
		known.all = append(known.all, name)
		known.set[name] = true
	}
	count := 0
	for i := 0; i < 150000; i++ {
		if blocked(&known, "user"+strconv.Itoa(1000+i%9000)) {
			count += int(settle(uint64(i+1), 10000)&1) + 1
		}
	}
	fmt.Fprintln(os.Stderr, count)
}
