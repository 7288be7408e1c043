// Two goroutines lock a mutex for each item; the fix adds up in each and locks once.
package main

import (
	"fmt"
	"os"
	"sync"
)

type ledger struct {
	sync.Mutex
	total uint64
}

//go:noinline
func post(to *ledger, amount uint64) {
	to.Lock() // SLOW
	to.total += amount
	to.Unlock()
}

func main() {
	var books ledger
	var group sync.WaitGroup
	for worker := 0; worker < 2; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			mine, seed := uint64(0), uint32(worker+1)
			for i := 0; i < 120000000; i++ {
				seed = seed*1664525 + 1013904223
				if os.Args[1] == "after" {
					mine += uint64(seed >> 28)
				} else {
					post(&books, uint64(seed>>28))
				}
			}
			post(&books, mine)
		}()
	}
	group.Wait()
	fmt.Fprintln(os.Stderr, books.total)
}
