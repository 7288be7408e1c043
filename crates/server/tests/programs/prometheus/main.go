// Reads metrics by Prometheus' own parser for the content type that is its argument. Prints each series, or the first error.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

func main() {
	text, err := io.ReadAll(os.Stdin)
	check(err)
	parser, err := textparse.New(text, os.Args[1], labels.NewSymbolTable(), textparse.ParserOptions{})
	check(err)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		check(err)
		if entry == textparse.EntrySeries {
			var all labels.Labels
			parser.Labels(&all)
			_, _, value := parser.Series()
			fmt.Println(all, value)
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
