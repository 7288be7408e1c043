// Likewise, in goroutines one after the other.
package main

import (
	"os"
	"strconv"
	"time"
)

const unit = 2000000

//go:noinline
func sixty(x uint32) uint32 {
	for i := 0; i < 6*unit; i++ {
		x = x*1664525 + 1013904223
	}
	return x
}

//go:noinline
func thirty(x uint32) uint32 {
	for i := 0; i < 3*unit; i++ {
		x = x*1664525 + 1013904223
	}
	return x + 1
}

//go:noinline
func ten(x uint32) uint32 {
	for i := 0; i < unit; i++ {
		x = x*1664525 + 1013904223
	}
	return x + 2
}

func main() {
	seconds := 3
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	out := make(chan uint32)
	x := uint32(1)
	for time.Now().Before(end) {
		go func() { out <- ten(thirty(sixty(x))) }()
		x = <-out
	}
}
