// Evaluates PromQL with Prometheus' own engine, over samples that are held in memory.
//
// Reads JSON from standard input, and writes the number of series in each result, or the error.
// Comparisons give 0 or 1 and drop nothing, so an alert that does not fire has a result, too.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"sort"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

type input struct {
	AtMs        int64 `json:"at_ms"`
	Expressions []string
	Series      []struct {
		Labels  map[string]string
		Samples [][2]float64 // milliseconds, value
	}
}

type result struct {
	Series int    `json:"series"`
	Error  string `json:"error"`
}

type sample struct {
	t int64
	v float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type stored struct {
	labels  labels.Labels
	samples []chunks.Sample
}

type memory []stored

func (m memory) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: m.selected}, nil
}

func (m memory) selected(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := []storage.Series{}
	for _, each := range m {
		if matches(each.labels, matchers) {
			found = append(found, storage.NewListSeries(each.labels, each.samples))
		}
	}
	return &set{found: found}
}

func matches(known labels.Labels, matchers []*labels.Matcher) bool {
	for _, matcher := range matchers {
		if !matcher.Matches(known.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

type set struct {
	found []storage.Series
	next  int
}

func (s *set) Next() bool                        { s.next++; return s.next <= len(s.found) }
func (s *set) At() storage.Series                { return s.found[s.next-1] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

func withoutFilters(text string) (string, error) {
	expression, err := parser.ParseExpr(text)
	if err != nil {
		return "", err
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if binary, ok := node.(*parser.BinaryExpr); ok && binary.Op.IsComparisonOperator() {
			binary.ReturnBool = true
		}
		return nil
	})
	return expression.String(), nil
}

func evaluate(engine *promql.Engine, data memory, text string, at time.Time) result {
	text, err := withoutFilters(text)
	if err != nil {
		return result{Error: err.Error()}
	}
	query, err := engine.NewInstantQuery(context.Background(), data, nil, text, at)
	if err != nil {
		return result{Error: err.Error()}
	}
	defer query.Close()
	value := query.Exec(context.Background())
	if value.Err != nil {
		return result{Error: value.Err.Error()}
	}
	vector, err := value.Vector()
	if err != nil {
		return result{Series: 1} // a scalar
	}
	return result{Series: len(vector)}
}

func main() {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		log.Fatal(err)
	}
	data := memory{}
	for _, each := range in.Series {
		one := stored{labels: labels.FromMap(each.Labels)}
		for _, pair := range each.Samples {
			one.samples = append(one.samples, sample{int64(pair[0]), pair[1]})
		}
		data = append(data, one)
	}
	sort.Slice(data, func(i, j int) bool { return labels.Compare(data[i].labels, data[j].labels) < 0 })
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 10_000_000, Timeout: time.Minute})
	results := []result{}
	for _, text := range in.Expressions {
		results = append(results, evaluate(engine, data, text, time.UnixMilli(in.AtMs)))
	}
	if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		log.Fatal(err)
	}
}
