// Says what Go's own runtime takes addresses of this program for: reads them from its input, in base 16, and writes the functions around
// each, the innermost inlined call first, and an empty line behind them.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	_ "runtime/pprof"
	"strconv"
	"strings"
	_ "unsafe"
)

// What runtime/pprof takes apart the inlined calls of an address with. It leaves out functions that only wrap others.
//
//go:linkname expand runtime/pprof.runtime_expandFinalInlineFrame
func expand(stack []uintptr) []uintptr

// How far from its stated addresses the program was loaded. Its argument is the lowest that it states.
func bias() uint64 {
	program, err := os.Executable()
	check(err)
	maps, err := os.ReadFile("/proc/self/maps")
	check(err)
	for _, line := range strings.Split(string(maps), "\n") {
		if strings.HasSuffix(line, program) {
			lowest, err := strconv.ParseUint(strings.SplitN(line, "-", 2)[0], 16, 64)
			check(err)
			stated, err := strconv.ParseUint(os.Args[1], 16, 64)
			check(err)
			return lowest - stated
		}
	}
	panic("it is not in its own memory")
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	bias := bias()
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		address, err := strconv.ParseUint(in.Text(), 16, 64)
		check(err)
		// What is in a stack is where calls return to.
		for _, pc := range expand([]uintptr{uintptr(address+bias) + 1}) {
			frames := runtime.CallersFrames([]uintptr{pc})
			frame, _ := frames.Next()
			fmt.Fprintf(out, "%s\t%s\t%d\n", frame.Function, frame.File, frame.Line)
		}
		fmt.Fprintln(out)
	}
}
