// Two functions that are inlined into one, of which the first takes three quarters of the time: for tests. Runs for so many milliseconds.
package main

import (
	"os"
	"strconv"
	"time"
)

var sink uint64

func step(x, i uint64) uint64 {
	x = x*6364136223846793005 + i
	return x ^ x>>29
}

func parse(n uint64) {
	for i := uint64(0); i < n; i++ {
		sink = step(sink, i)
	}
}

func render(n uint64) {
	for i := uint64(0); i < n; i++ {
		sink = step(sink, i) + 1
	}
}

//go:noinline
func run() {
	parse(3000000)
	render(1000000)
}

func main() {
	milliseconds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	for start := time.Now(); time.Since(start) < time.Duration(milliseconds)*time.Millisecond; {
		run()
	}
}
