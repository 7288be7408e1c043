// Goroutines that wait, each in its own way. Prints what Go's runtime says of them, then the line `ready`, and waits.
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

//go:noinline
func receives(from chan int) int { return <-from }

//go:noinline
func sends(to chan int) { to <- 1 }

//go:noinline
func locks(mutex *sync.Mutex) { mutex.Lock() }

//go:noinline
func sleeps() { time.Sleep(time.Hour) }

//go:noinline
func accepts(listener net.Listener) { listener.Accept() }

//go:noinline
func selects(one, other chan int) {
	select {
	case <-one:
	case <-other:
	}
}

//go:noinline
func waits(group *sync.WaitGroup) { group.Wait() }

//go:noinline
func deep(level int, from chan int) int {
	if level == 0 {
		return receives(from)
	}
	return deep(level-1, from) + level
}

func main() {
	// A collection would move stacks and change states between the two looks.
	debug.SetGCPercent(-1)
	never := make(chan int)
	mutex := &sync.Mutex{}
	mutex.Lock()
	group := &sync.WaitGroup{}
	group.Add(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	for range 1000 {
		go receives(never)
	}
	go sends(make(chan int))
	go locks(mutex)
	go sleeps()
	go accepts(listener)
	go selects(never, make(chan int))
	go waits(group)
	go deep(300, never)
	time.Sleep(300 * time.Millisecond)
	text := make([]byte, 16<<20)
	os.Stdout.Write(text[:runtime.Stack(text, true)])
	fmt.Println("\nready")
	group.Wait()
}
