// A program whose hot call the compiler inlines only if a profile says that it is hot.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"
)

type shape interface{ area(n int) int }
type square struct{ side int }
type circle struct{ radius int }

func (s *square) area(n int) int { return s.side*s.side + mix(n) }
func (c *circle) area(n int) int { return 3*c.radius + n }

// Too large to be inlined without a profile.
func mix(n int) int {
	for i := 0; i < 3; i++ {
		n ^= n << 13
		n ^= n >> 7
		n ^= n << 17
		if n%1000003 == 0 {
			n -= len(fmt.Sprint("rare", n, i, len(os.Args)))
			n += len(fmt.Sprint(n, i))
		}
		if n%1000033 == 0 {
			n += len(fmt.Sprint(n, i, n))
		}
	}
	return n
}

//go:noinline
func sum(shapes []shape, count int) (total int) {
	for i := 0; i < count; i++ {
		total += shapes[i%len(shapes)].area(i)
	}
	return total
}

func main() {
	if len(os.Args) > 1 {
		file, _ := os.Create(os.Args[1])
		pprof.StartCPUProfile(file)
		defer file.Close()
		defer pprof.StopCPUProfile()
	}
	shapes := []shape{&square{3}, &square{4}, &square{5}, &circle{6}}
	total := 0
	for i := 0; i < 400; i++ {
		total += sum(shapes, 1000000)
	}
	fmt.Println(total != 0)
}
