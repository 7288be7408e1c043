// Appends to a string, which copies it each time; the fix uses a strings.Builder.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

//go:noinline
func report(lines int) string {
	if os.Args[1] == "after" {
		var text strings.Builder
		for i := 0; i < lines; i++ {
			text.WriteString("line " + strconv.Itoa(i) + "\n")
		}
		return text.String()
	}
	text := ""
	for i := 0; i < lines; i++ {
		text += "line " + strconv.Itoa(i) + "\n" // SLOW
	}
	return text
}

func main() {
	size := 0
	for round := 0; round < 4; round++ {
		size += len(report(15000))
	}
	fmt.Fprintln(os.Stderr, size)
}
