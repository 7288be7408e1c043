// Calls between Go and C in both directions: for tests. Runs for so many milliseconds.
package main

/*
#include <stdint.h>
void c_work(uint64_t n);
void c_back(uint64_t n);
*/
import "C"

import (
	"os"
	"strconv"
	"time"
)

var sink uint64

//go:noinline
func spin(n uint64) {
	for i := uint64(0); i < n; i++ {
		sink += i * i
	}
}

//go:noinline
func stay(n uint64) { spin(n); sink++ }

//go:noinline
func cross(n uint64) { C.c_work(C.uint64_t(n)); sink++ }

//go:noinline
func crossTwice(n uint64) { C.c_back(C.uint64_t(n)); sink++ }

//export goBack
func goBack(n C.uint64_t) { spin(uint64(n)); sink++ }

func main() {
	milliseconds, _ := strconv.Atoi(os.Args[1])
	done := make(chan bool)
	go func() {
		end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
		for time.Now().Before(end) {
			stay(1000000)
			cross(1000000)
			crossTwice(1000000)
		}
		done <- true
	}()
	<-done
}
