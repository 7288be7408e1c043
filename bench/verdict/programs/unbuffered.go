// Prints each line straight to a file, which is a call of the kernel each; the fix prints to a buffer.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
)

//go:noinline
func export(to io.Writer, rows int) {
	for row := 0; row < rows; row++ {
		fmt.Fprintln(to, row, row*7) // SLOW
	}
}

func main() {
	file, err := os.Create("rows.txt")
	if err != nil {
		panic(err)
	}
	if os.Args[1] == "after" {
		buffer := bufio.NewWriterSize(file, 65536)
		export(buffer, 900000)
		buffer.Flush()
	} else {
		export(file, 900000)
	}
	size, _ := file.Seek(0, io.SeekCurrent)
	fmt.Fprintln(os.Stderr, size)
}
