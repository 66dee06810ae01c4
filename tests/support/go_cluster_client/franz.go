package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type franz struct{}

type franzClient struct {
	*kgo.Client
	mutex  sync.Mutex
	failed []string
}

func common(s settings) []kgo.Opt {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(s["bootstrap"], ",")...),
		kgo.ClientID(s["client"]),
	}
	if timeout, given := s.timeout(); given {
		options = append(options,
			kgo.ProduceRequestTimeout(timeout/2), kgo.RequestTimeoutOverhead(timeout/2))
	}
	return options
}

func (franz) producer(s settings) (client, error) {
	options := append(common(s),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerLinger(5*time.Millisecond))
	if id := s["transactional-id"]; id != "" {
		options = append(options, kgo.TransactionalID(id))
	}
	if retries, given := s.retries(); given {
		options = append(options, kgo.RecordRetries(retries))
	}
	made, err := kgo.NewClient(options...)
	return &franzClient{Client: made}, err
}

func reading(s settings) []kgo.Opt {
	return append(common(s), kgo.ConsumeTopics(strings.Split(s["topics"], ",")...))
}

func (franz) consumer(s settings) (client, error) {
	options := append(reading(s),
		kgo.ConsumerGroup(s["group"]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.DisableAutoCommit())
	if rack := s["rack"]; rack != "" {
		options = append(options, kgo.Rack(rack))
	}
	made, err := kgo.NewClient(options...)
	return &franzClient{Client: made}, err
}

func (franz) shareConsumer(s settings) (client, error) {
	made := &franzClient{}
	options := append(reading(s), kgo.ShareGroup(s["group"]), kgo.ShareMaxRecords(pollMax))
	var err error
	made.Client, err = kgo.NewClient(options...)
	return &franzShareClient{franzClient: made}, err
}

// name is that of Kafka's error in it, or all of its text without spaces.
func name(err error) string {
	if known := new(kerr.Error); errors.As(err, &known) {
		return known.Message
	}
	return strings.ReplaceAll(err.Error(), " ", "_")
}

func (c *franzClient) send(topic string, partition int32, value string) error {
	record := &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}
	c.Produce(context.Background(), record, func(_ *kgo.Record, err error) {
		if err != nil {
			c.mutex.Lock()
			defer c.mutex.Unlock()
			c.failed = append(c.failed, name(err))
		}
	})
	return nil
}

func (c *franzClient) flush() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := c.Flush(ctx)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	failed := c.failed
	c.failed = nil
	return failed, err
}

func (c *franzClient) begin() error { return c.BeginTransaction() }

func (c *franzClient) commit() error {
	failed, err := c.flush()
	if err == nil && failed != nil {
		err = errors.New(strings.Join(failed, " "))
	}
	if err != nil {
		return err
	}
	return c.end(kgo.TryCommit)
}

func (c *franzClient) abort() error {
	if _, err := c.flush(); err != nil {
		return err
	}
	return c.end(kgo.TryAbort)
}

func (c *franzClient) end(how kgo.TransactionEndTry) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.EndTransaction(ctx, how)
}

func (c *franzClient) offset(string, string, int32, int64) error { return errNotHere }

func (c *franzClient) poll() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), pollFor)
	defer cancel()
	fetches := c.PollRecords(ctx, pollMax)
	var values []string
	fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	for _, each := range fetches.Errors() {
		// The client joins its group again by itself.
		if left := new(kgo.ErrGroupSession); errors.As(each.Err, &left) {
			continue
		}
		if !errors.Is(each.Err, context.DeadlineExceeded) {
			return nil, each.Err
		}
	}
	return values, nil
}

func (c *franzClient) commitOffsets() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.CommitUncommittedOffsets(ctx)
}

func (c *franzClient) close() { c.Close() }

// franzShareClient accepts what it polls.
type franzShareClient struct{ *franzClient }

func (c *franzShareClient) commitOffsets() error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.FlushAcks(ctx)
}
