// Clean: a sieve in blocks that fit the first cache.
package main

import (
	"fmt"
	"os"
)

const block = 32768

//go:noinline
func countPrimes(limit int) int {
	small := []int{}
	for n := 3; n*n <= limit; n += 2 {
		prime := true
		for _, p := range small {
			if p*p > n {
				break
			}
			if n%p == 0 {
				prime = false
				break
			}
		}
		if prime {
			small = append(small, n)
		}
	}
	var crossed [block]bool
	next := make([]int, len(small))
	for i, p := range small {
		next[i] = p * p / 2
	}
	count := 1
	for low := 0; low < limit/2; low += block {
		clear(crossed[:])
		for i, p := range small {
			at := next[i] - low
			for ; at < block; at += p {
				crossed[at] = true
			}
			next[i] = at + low
		}
		for i := range crossed {
			if !crossed[i] && low+i < limit/2 {
				count++
			}
		}
	}
	return count - 1
}

func main() {
	fmt.Fprintln(os.Stderr, countPrimes(900_000_000))
}
