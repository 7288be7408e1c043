// Goroutines that hand work to each other, maps, sorting, JSON, hashes and garbage, for so many seconds.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"sync"
	"time"
)

type item struct {
	Key   string
	Parts []int
	Next  *item
}

func grow(depth int, parts []int) *item {
	var room [64]int
	if depth == 0 {
		return nil
	}
	for i := range room {
		room[i] = depth * i
	}
	sort.Sort(sort.Reverse(sort.IntSlice(room[:])))
	return &item{Key: strconv.Itoa(room[1]), Parts: append([]int{}, parts...), Next: grow(depth-1, parts)}
}

func work(jobs <-chan int, sums chan<- int) {
	for job := range jobs {
		first := grow(40, []int{job, job + 1})
		text, err := json.Marshal(first)
		if err != nil {
			panic(err)
		}
		var back item
		if err := json.Unmarshal(text, &back); err != nil {
			panic(err)
		}
		hash := sha256.Sum256(text)
		sums <- int(hash[0]) + len(back.Parts)
	}
}

func main() {
	seconds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	jobs, sums := make(chan int), make(chan int)
	var workers sync.WaitGroup
	for i := 0; i < 8; i++ {
		workers.Add(1)
		go func() { defer workers.Done(); work(jobs, sums) }()
	}
	go func() {
		until := time.Now().Add(time.Duration(seconds) * time.Second)
		for job := 0; time.Now().Before(until); job++ {
			// What is new has a small stack, that has to grow.
			done := make(chan *item)
			go func() { done <- grow(60, nil) }()
			<-done
			jobs <- job
		}
		close(jobs)
		workers.Wait()
		close(sums)
	}()
	total := 0
	for sum := range sums {
		total += sum
	}
	fmt.Println(total)
}
