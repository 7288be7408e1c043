package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

const openMetrics = "application/openmetrics-text; version=1.0.0"

// Reads a file of rules as Prometheus does at its start, and metrics from standard input. Prints the alerts.
func readRules(file string) {
	scraped := scrape()
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	for _, err := range errs {
		fmt.Fprintln(os.Stderr, err)
	}
	if len(errs) > 0 {
		os.Exit(1)
	}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			fmt.Println(rule.Alert)
			checkSelected(rule.Expr, scraped)
		}
	}
}

// Reads a file with an expression a line, and metrics from standard input. Prints the expressions.
func readExpressions(file string) {
	scraped := scrape()
	lines, err := os.Open(file)
	check(err)
	for scanner := bufio.NewScanner(lines); scanner.Scan(); {
		fmt.Println(scanner.Text())
		checkSelected(scanner.Text(), scraped)
	}
}

// The series that Prometheus makes of metrics: each has a job and an instance.
func scrape() []labels.Labels {
	text, err := io.ReadAll(os.Stdin)
	check(err)
	var scraped []labels.Labels
	eachSeries(openMetrics, text, func(all labels.Labels, _ float64) {
		scraped = append(scraped, labels.NewBuilder(all).Set("job", "plumb").Set("instance", "127.0.0.1:4041").Labels())
	})
	return scraped
}

// Fails unless each selector of an expression selects a series, which has the labels that the expression groups by.
func checkSelected(text string, scraped []labels.Labels) {
	expression, err := parser.NewParser(parser.Options{}).ParseExpr(text)
	check(err)
	parser.Inspect(expression, func(node parser.Node, path []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok && !isSelected(selector, path, scraped) {
			check(fmt.Errorf("%s: nothing is selected by %s with its grouping", text, selector))
		}
		return nil
	})
}

func isSelected(selector *parser.VectorSelector, path []parser.Node, scraped []labels.Labels) bool {
	var grouping []string
	for _, node := range path {
		if aggregate, ok := node.(*parser.AggregateExpr); ok {
			grouping = append(grouping, aggregate.Grouping...)
		}
	}
next:
	for _, series := range scraped {
		for _, matcher := range selector.LabelMatchers {
			if !matcher.Matches(series.Get(matcher.Name)) {
				continue next
			}
		}
		for _, name := range grouping {
			if !series.Has(name) {
				continue next
			}
		}
		return true
	}
	return false
}
