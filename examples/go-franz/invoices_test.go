package invoices

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// startOdradek starts a broker that ends with the test.
func startOdradek(t *testing.T) (bootstrapServers string) {
	t.Helper()
	command := exec.Command(
		"odradek", "serve", "--port", "0", "--print-address",
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
	var address struct {
		BootstrapServers string `json:"bootstrap_servers"`
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &address)
	}
	if err != nil {
		t.Fatal("odradek did not start: ", err)
	}
	return address.BootstrapServers
}

func TestAnOrderBecomesAnInvoice(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	bootstrapServers := startOdradek(t)
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
