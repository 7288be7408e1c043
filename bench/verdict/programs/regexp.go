// Compiles a regular expression for each line; the fix compiles it once.
package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
)

const pattern = `^(GET|POST) /([a-z]+)/([0-9]+) HTTP/1\.[01]$`

var compiled = regexp.MustCompile(pattern)

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
func isRequest(line string) bool {
	expression := compiled
	if os.Args[1] == "before" {
		expression = regexp.MustCompile(pattern) // SLOW
	}
	return expression.MatchString(line)
}

func main() {
	requests := 0
	for i := 0; i < 90000; i++ {
		if isRequest("GET /item/" + strconv.Itoa(i) + " HTTP/1." + strconv.Itoa(i%3)) {
			requests += int(settle(uint64(i+1), 3000)&1) + 1
		}
	}
	fmt.Fprintln(os.Stderr, requests)
}
