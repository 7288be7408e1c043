// Test program with chains of calls on goroutines' stacks. Runs for the given number of milliseconds.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

//go:noinline
func spin(until time.Time) int {
	sum := 0
	for time.Now().Before(until) {
		for i := 0; i < 1000; i++ {
			sum += i ^ sum
		}
	}
	return sum
}

//go:noinline
func third(until time.Time) int { return 1 + spin(until) }

//go:noinline
func second(until time.Time) int { return 2 + third(until) }

//go:noinline
func first(until time.Time) int { return 3 + second(until) }

//go:noinline
func deepen(depth int, room [16]int) int {
	if depth == 0 {
		return room[3]
	}
	room[depth%16]++
	return deepen(depth-1, room) + room[1]
}

// The name of the instance for the type below is several hundred characters long.
//
//go:noinline
func ofType[T any](value T) int { return len(fmt.Sprint(value)) }

func main() {
	milliseconds, _ := strconv.Atoi(os.Args[1])
	until := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	sums := make(chan int)
	go func() { sums <- first(until) }()
	// Growing stacks and garbage: for both, the runtime switches to its own stacks.
	go func() {
		sum := 0
		for time.Now().Before(until) {
			done := make(chan []int)
			go func() { done <- append(make([]int, 1000), deepen(200, [16]int{})) }()
			sum += len(<-done)
		}
		sums <- sum
	}()
	long := ofType(struct {
		thisFieldHasALongName, andThisOneHasAnother, soThatTheNameOfTheirTypeIsLonger, thanWhatAnyoneWouldWrite string
		inWhateverProgramItIs, butNotLongerThanNames, thatProgramsOfGoReallyHave, asTheyListAllFieldsOfTypes    int
	}{})
	fmt.Println(<-sums + <-sums + long)
}
