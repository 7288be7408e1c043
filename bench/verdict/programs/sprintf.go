// Makes keys with fmt.Sprintf; the fix appends digits to a buffer that is kept.
package main

import (
	"fmt"
	"os"
	"strconv"
)

var buffer []byte

//go:noinline
func countKey(counts map[string]int, user, item int) {
	if os.Args[1] == "after" {
		buffer = strconv.AppendInt(buffer[:0], int64(user), 10)
		buffer = append(buffer, ':')
		buffer = strconv.AppendInt(buffer, int64(item), 10)
		counts[string(buffer)]++
		return
	}
	counts[fmt.Sprintf("%d:%d", user, item)]++ // SLOW
}

func main() {
	counts := map[string]int{}
	for user := 0; user < 100; user++ {
		for item := 0; item < 10; item++ {
			counts[strconv.Itoa(user)+":"+strconv.Itoa(item)] = 0
		}
	}
	for i := 0; i < 12000000; i++ {
		countKey(counts, i%100, i/100%10)
	}
	fmt.Fprintln(os.Stderr, len(counts), counts["7:7"])
}
