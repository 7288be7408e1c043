// Allocates a buffer for each request, which the collector has to free; the fix keeps one.
package main

import (
	"fmt"
	"os"
)

type request struct {
	body []byte
	tags map[int]int
}

var live [4096]*request

//go:noinline
func prepare(number int) *request {
	if old := live[number%len(live)]; old != nil && os.Args[1] == "after" {
		clear(old.tags)
		return old
	}
	return &request{make([]byte, 1024), make(map[int]int, 16)} // SLOW
}

func main() {
	sum := 0
	for number := 0; number < 1700000; number++ {
		r := prepare(number)
		r.body[number%1024] = byte(number)
		r.tags[number%16] = number
		live[number%len(live)] = r
		sum += len(r.tags)
	}
	fmt.Fprintln(os.Stderr, sum)
}
