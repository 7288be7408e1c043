// Likewise, in C called from Go.
package main

/*
#include <stdint.h>
#define UNIT 2000000
__attribute__((noinline)) static uint32_t spin(uint32_t x, int n) { for (int i = 0; i < n; i++) { x = x * 1664525u + 1013904223u; __asm__ volatile("" : "+r"(x)); } return x; }
uint32_t c_sixty(uint32_t x) { return spin(x, 6 * UNIT) + 1; }
uint32_t c_thirty(uint32_t x) { return spin(x, 3 * UNIT) + 2; }
uint32_t c_ten(uint32_t x) { return spin(x, UNIT) + 3; }
*/
import "C"

import (
	"os"
	"strconv"
	"time"
)

//go:noinline
func sixty(x C.uint32_t) C.uint32_t { return C.c_sixty(x) + 1 }

//go:noinline
func thirty(x C.uint32_t) C.uint32_t { return C.c_thirty(x) + 1 }

//go:noinline
func ten(x C.uint32_t) C.uint32_t { return C.c_ten(x) + 1 }

func main() {
	seconds := 3
	if len(os.Args) > 1 {
		seconds, _ = strconv.Atoi(os.Args[1])
	}
	end := time.Now().Add(time.Duration(seconds) * time.Second)
	x := C.uint32_t(1)
	for time.Now().Before(end) {
		x = ten(thirty(sixty(x)))
	}
}
