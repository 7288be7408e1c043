// Hands each number to a worker over a channel without a buffer, and back; the fix hands over slices.
package main

import (
	"fmt"
	"os"
)

type job struct{ id, value int }

func worker(jobs <-chan job, results chan<- int) {
	for one := range jobs {
		results <- one.value*one.value%1009 + one.id%3
	}
	close(results)
}

func single(total int) int {
	jobs, results := make(chan job), make(chan int)
	go worker(jobs, results)
	go func() {
		for i := 0; i < total; i++ {
			jobs <- job{i, i * 7} // SLOW
		}
		close(jobs)
	}()
	sum := 0
	for value := range results {
		sum += value
	}
	return sum
}

func batched(total int) int {
	jobs, results := make(chan []job), make(chan int)
	go func() {
		for batch := range jobs {
			sum := 0
			for _, one := range batch {
				sum += one.value*one.value%1009 + one.id%3
			}
			results <- sum
		}
		close(results)
	}()
	go func() {
		for i := 0; i < total; i += 1000 {
			batch := make([]job, 0, 1000)
			for k := i; k < i+1000 && k < total; k++ {
				batch = append(batch, job{k, k * 7})
			}
			jobs <- batch
		}
		close(jobs)
	}()
	sum := 0
	for value := range results {
		sum += value
	}
	return sum
}

func main() {
	total, sum := 3000000, 0
	if os.Args[1] == "after" {
		sum = batched(total)
	} else {
		sum = single(total)
	}
	fmt.Fprintln(os.Stderr, sum)
}
