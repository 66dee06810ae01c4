// Package invoices consumes orders and produces invoices.
package invoices

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

var prices = map[string]int{"coffee": 3, "tea": 2}

// WriteInvoices writes an invoice for each order, until the context ends.
func WriteInvoices(ctx context.Context, bootstrapServers string) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrapServers),
		kgo.ConsumerGroup("invoices"),
		kgo.ConsumeTopics("orders"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.AllowAutoTopicCreation(),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, order := range fetches.Records() {
			total := strconv.Itoa(prices[string(order.Value)])
			invoice := &kgo.Record{Topic: "invoices", Key: order.Key, Value: []byte(total)}
			if err := client.ProduceSync(ctx, invoice).FirstErr(); err != nil {
				return err
			}
		}
		if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}
