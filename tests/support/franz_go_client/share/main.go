// A member of a share group that accepts, releases and rejects records until all are settled.
//
// Arguments: bootstrap server, topic, group, number of records. For each record it writes
// "settled partition offset" when its acknowledgement was sent, and "again partition offset" if it
// comes after that.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const limit = 60 * time.Second

func main() {
	records, err := strconv.Atoi(os.Args[4])
	if err == nil {
		err = settleAll(os.Args[1], os.Args[2], os.Args[3], records)
	}
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}

func settleAll(bootstrap, topic, group string, records int) error {
	var refused error
	client, err := kgo.NewClient(
		kgo.SeedBrokers(bootstrap),
		kgo.ConsumeTopics(topic),
		kgo.ShareGroup(group),
		kgo.ShareMaxRecords(100),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if !results.Ok() {
				refused = results.Error()
			}
		}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	settled := map[string]bool{}
	for len(settled) < records {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		names := []string{}
		fetches.EachRecord(func(record *kgo.Record) {
			name := fmt.Sprintf("%d %d", record.Partition, record.Offset)
			if settled[name] {
				fmt.Println("again", name)
			}
			status := statusOf(record)
			record.Ack(status)
			if status != kgo.AckRelease {
				names = append(names, name)
			}
		})
		if err := client.FlushAcks(ctx); err != nil {
			return err
		}
		if refused != nil {
			return refused
		}
		for _, name := range names {
			settled[name] = true
			fmt.Println("settled", name)
		}
	}
	return nil
}

// Every fifth record is released when it comes first, and every seventh is rejected.
func statusOf(record *kgo.Record) kgo.AckStatus {
	if record.Offset%5 == 0 && record.DeliveryCount() == 1 {
		return kgo.AckRelease
	}
	if record.Offset%7 == 0 {
		return kgo.AckReject
	}
	return kgo.AckAccept
}
