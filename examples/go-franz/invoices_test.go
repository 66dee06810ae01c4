package invoices

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// odradek is a broker that ends with its test.
type odradek struct {
	BootstrapServers string `json:"bootstrap_servers"`
	ControlURL       string `json:"control_url"`
	ControlToken     string `json:"control_token"`
}

func startOdradek(t *testing.T) (broker odradek) {
	t.Helper()
	command := exec.Command(
		"odradek", "serve", "--port", "0", "--print-address", "--control",
		"--override", "log.dirs="+t.TempDir(),
		"--override", "group.initial.rebalance.delay.ms=0",
	)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
	})
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &broker)
	}
	if err != nil {
		t.Fatal("odradek did not start: ", err)
	}
	return broker
}

// call lets the broker do something, as to fail. The call and its result are JSON.
func (broker odradek) call(t *testing.T, call string) (result string) {
	t.Helper()
	request, err := http.NewRequest("POST", broker.ControlURL, strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+broker.ControlToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(string(body), err)
	}
	return string(body)
}

func TestAnOrderBecomesAnInvoice(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	bootstrapServers := startOdradek(t).BootstrapServers
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrapServers),
		kgo.AllowAutoTopicCreation(),
		kgo.ConsumeTopics("invoices"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	order := &kgo.Record{Topic: "orders", Key: []byte("table-7"), Value: []byte("coffee")}
	if err := client.ProduceSync(ctx, order).FirstErr(); err != nil {
		t.Fatal(err)
	}

	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- WriteInvoices(running, bootstrapServers) }()
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	invoice := fetches.Records()[0]
	if string(invoice.Key) != "table-7" || string(invoice.Value) != "3" {
		t.Errorf("got %s: %s", invoice.Key, invoice.Value)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestALostAnswerDoublesNoOrder(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	broker := startOdradek(t)
	broker.call(t, `{"type": "Inject", "faults": [
		{"api": "PRODUCE", "cut": "before_answer"},
		{"api": "PRODUCE", "topic": "orders", "partition": 0, "error": "NOT_ENOUGH_REPLICAS"}]}`)
	client, err := kgo.NewClient(
		kgo.SeedBrokers(broker.BootstrapServers),
		kgo.AllowAutoTopicCreation(),
		kgo.MetadataMinAge(10*time.Millisecond), // it tries again after so long
	)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for offset, order := range []string{"coffee", "tea"} {
		record := &kgo.Record{Topic: "orders", Value: []byte(order)}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if record.Offset != int64(offset) {
			t.Errorf("%s is at %d", order, record.Offset)
		}
	}
}
