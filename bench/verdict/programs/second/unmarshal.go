// Decodes the same settings for each request; the fix decodes them once.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

const text = `{"name":"shop","limits":{"requests":100,"burst":20},"hosts":["a","b","c"],"retry":{"count":3,"delay":0.25}}`

var kept map[string]any

//go:noinline
func settings(after bool) map[string]any {
	if after && kept != nil {
		return kept
	}
	var decoded map[string]any
	if err := json.Unmarshal([]byte(text), &decoded); err != nil { // SLOW
		panic(err)
	}
	kept = decoded
	return decoded
}

func main() {
	after := os.Args[1] == "after"
	total := 0
	for i := 0; i < 300000; i++ {
		total += len(settings(after)) + i%3
	}
	fmt.Fprintln(os.Stderr, total)
}
