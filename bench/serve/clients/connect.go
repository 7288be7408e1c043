// Pushes and asks with the Connect clients that Pyroscope publishes (github.com/grafana/pyroscope/api), in protocol buffers and in JSON:
// what was pushed is what is answered, and both answers are equal.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"os"
	"time"

	"connectrpc.com/connect"
	googlev1 "github.com/grafana/pyroscope/api/gen/proto/go/google/v1"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	querierv1 "github.com/grafana/pyroscope/api/gen/proto/go/querier/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/querier/v1/querierv1connect"
	typesv1 "github.com/grafana/pyroscope/api/gen/proto/go/types/v1"
	"google.golang.org/protobuf/proto"
)

const cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

// A second in main;work, as pprof has it.
func profile(now time.Time) []byte {
	message := &googlev1.Profile{
		StringTable: []string{"", "cpu", "nanoseconds", "main", "work"},
		SampleType:  []*googlev1.ValueType{{Type: 1, Unit: 2}},
		PeriodType:  &googlev1.ValueType{Type: 1, Unit: 2},
		Period:      10_000_000,
		TimeNanos:   now.UnixNano(),
		Function:    []*googlev1.Function{{Id: 1, Name: 3}, {Id: 2, Name: 4}},
		Location:    []*googlev1.Location{{Id: 1, Line: []*googlev1.Line{{FunctionId: 1}}}, {Id: 2, Line: []*googlev1.Line{{FunctionId: 2}}}},
		Sample:      []*googlev1.Sample{{LocationId: []uint64{2, 1}, Value: []int64{1_000_000_000}}},
	}
	raw, err := proto.Marshal(message)
	must(err)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err = writer.Write(raw)
	must(err)
	must(writer.Close())
	return packed.Bytes()
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func expect(what string, is, want any) {
	if fmt.Sprint(is) != fmt.Sprint(want) {
		must(fmt.Errorf("%s: %v, not %v", what, is, want))
	}
}

type answers struct{ messages []proto.Message }

func ask[Q, A any](a *answers, call func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q) *A {
	answer, err := call(context.Background(), connect.NewRequest(question))
	must(err)
	a.messages = append(a.messages, any(answer.Msg).(proto.Message))
	return answer.Msg
}

func queries(url string, now time.Time, codec string, options ...connect.ClientOption) *answers {
	service := "from-connect-" + codec
	labels := []*typesv1.LabelPair{{Name: "__name__", Value: "process_cpu"}, {Name: "service_name", Value: service}, {Name: "region", Value: "eu"}}
	push := pushv1connect.NewPusherServiceClient(http.DefaultClient, url, options...)
	samples := []*pushv1.RawSample{{RawProfile: profile(now)}}
	_, err := push.Push(context.Background(), connect.NewRequest(&pushv1.PushRequest{Series: []*pushv1.RawProfileSeries{{Labels: labels, Samples: samples}}}))
	must(err)

	client := querierv1connect.NewQuerierServiceClient(http.DefaultClient, url, options...)
	start, end := now.Add(-time.Minute).UnixMilli(), now.Add(time.Minute).UnixMilli()
	selector := fmt.Sprintf("{service_name=%q}", service)
	a := &answers{}
	types := ask(a, client.ProfileTypes, &querierv1.ProfileTypesRequest{Start: start, End: end})
	found := false
	for _, kind := range types.ProfileTypes {
		found = found || kind.ID == cpu
	}
	expect("the profile type", found, true)
	values := ask(a, client.LabelValues, &typesv1.LabelValuesRequest{Name: "region", Matchers: []string{selector}, Start: start, End: end})
	expect("the label's values", values.Names, []string{"eu"})
	ask(a, client.LabelNames, &typesv1.LabelNamesRequest{Matchers: []string{selector}, Start: start, End: end})
	series := ask(a, client.Series, &querierv1.SeriesRequest{Matchers: []string{selector}, LabelNames: []string{"region"}, Start: start, End: end})
	expect("the series", len(series.LabelsSet), 1)
	stacks := &querierv1.SelectMergeStacktracesRequest{ProfileTypeID: cpu, LabelSelector: selector, Start: start, End: end}
	flame := ask(a, client.SelectMergeStacktraces, stacks)
	expect("the flame graph", fmt.Sprint(flame.Flamegraph.Names, flame.Flamegraph.Total), "[total main work] 1000000000")
	points := ask(a, client.SelectSeries, &querierv1.SelectSeriesRequest{ProfileTypeID: cpu, LabelSelector: selector, Start: start, End: end, Step: 15})
	expect("the sum", points.Series[0].Points[0].Value, 1e9)
	merged := ask(a, client.SelectMergeProfile, &querierv1.SelectMergeProfileRequest{ProfileTypeID: cpu, LabelSelector: selector, Start: start, End: end})
	expect("the profile", merged.Sample[0].Value, []int64{1_000_000_000})
	diff := ask(a, client.Diff, &querierv1.DiffRequest{Left: stacks, Right: stacks})
	expect("the difference", fmt.Sprint(diff.Flamegraph.LeftTicks, diff.Flamegraph.RightTicks), "1000000000 1000000000")
	ask(a, client.GetProfileStats, &typesv1.GetProfileStatsRequest{})

	_, err = client.SelectSeries(context.Background(), connect.NewRequest(&querierv1.SelectSeriesRequest{ProfileTypeID: cpu, LabelSelector: "{a=", Start: start, End: end, Step: 15}))
	expect("the error of a wrong selector", connect.CodeOf(err), connect.CodeInvalidArgument)
	return a
}

func main() {
	url, now := os.Getenv("URL"), time.Now()
	binary := queries(url, now, "proto")
	json := queries(url, now, "json", connect.WithProtoJSON())
	packed := queries(url, now, "packed", connect.WithSendGzip())
	for place, message := range binary.messages[4:8] {
		for _, others := range []*answers{json, packed} {
			if !proto.Equal(message, others.messages[4+place]) {
				must(fmt.Errorf("answer %d differs between codecs", 4+place))
			}
		}
	}
	fmt.Printf("connect: %d answers in protocol buffers, JSON and gzip are equal\n", len(binary.messages))
}
