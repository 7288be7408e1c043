// What Prometheus itself makes of metrics on standard input, by its own parsers; the first error ends it:
//
//	prometheus CONTENT-TYPE        prints each series
//	prometheus rules FILE          prints the alerts of a file of rules, each of which has to select series among the metrics
//	prometheus expressions FILE    likewise a file with an expression a line
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
	switch os.Args[1] {
	case "rules":
		readRules(os.Args[2])
	case "expressions":
		readExpressions(os.Args[2])
	default:
		text, err := io.ReadAll(os.Stdin)
		check(err)
		eachSeries(os.Args[1], text, func(all labels.Labels, value float64) { fmt.Println(all, value) })
	}
}

func eachSeries(kind string, text []byte, seen func(labels.Labels, float64)) {
	parser, err := textparse.New(text, kind, labels.NewSymbolTable(), textparse.ParserOptions{})
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
			seen(all, value)
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
