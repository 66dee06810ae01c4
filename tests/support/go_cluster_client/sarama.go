package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

type ofSarama struct{}

func config(s settings) *sarama.Config {
	config := sarama.NewConfig()
	config.ClientID = s["client"]
	config.Version = sarama.V4_0_0_0
	if timeout, given := s.timeout(); given {
		config.Net.ReadTimeout = timeout
		config.Producer.Timeout = timeout
	}
	return config
}

type saramaProducer struct {
	sarama.AsyncProducer
	waiting sync.WaitGroup
	mutex   sync.Mutex
	failed  []string
}

func (ofSarama) producer(s settings) (client, error) {
	config := config(s)
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = 600 // a minute
	config.Producer.Transaction.Retry.Max = 600
	config.Producer.Transaction.ID = s["transactional-id"]
	config.Net.MaxOpenRequests = 1
	if retries, given := s.retries(); given {
		config.Producer.Retry.Max = retries
	}
	made, err := sarama.NewAsyncProducer(strings.Split(s["bootstrap"], ","), config)
	if err != nil {
		return nil, err
	}
	producer := &saramaProducer{AsyncProducer: made}
	go func() {
		for range made.Successes() {
			producer.waiting.Done()
		}
	}()
	go func() {
		for failure := range made.Errors() {
			producer.mutex.Lock()
			producer.failed = append(producer.failed, saramaName(failure.Err))
			producer.mutex.Unlock()
			producer.waiting.Done()
		}
	}()
	return producer, nil
}

func saramaName(err error) string {
	if known := sarama.KError(0); errors.As(err, &known) {
		return fmt.Sprintf("code-%d", int16(known))
	}
	return strings.ReplaceAll(err.Error(), " ", "_")
}

func (p *saramaProducer) send(topic string, partition int32, value string) error {
	p.waiting.Add(1)
	message := &sarama.ProducerMessage{Topic: topic, Partition: partition}
	message.Value = sarama.StringEncoder(value)
	p.Input() <- message
	return nil
}

func (p *saramaProducer) flush() ([]string, error) {
	p.waiting.Wait()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	failed := p.failed
	p.failed = nil
	return failed, nil
}

func (p *saramaProducer) begin() error  { return p.BeginTxn() }
func (p *saramaProducer) commit() error { return p.CommitTxn() }
func (p *saramaProducer) abort() error  { return p.AbortTxn() }

func (p *saramaProducer) offset(group, topic string, partition int32, offset int64) error {
	one := &sarama.PartitionOffsetMetadata{Partition: partition, Offset: offset}
	return p.AddOffsetsToTxn(map[string][]*sarama.PartitionOffsetMetadata{topic: {one}}, group)
}

func (p *saramaProducer) poll() ([]string, error) { return nil, errNotHere }
func (p *saramaProducer) commitOffsets() error    { return errNotHere }
func (p *saramaProducer) close()                  { p.AsyncProducer.AsyncClose() }

type taken struct {
	session sarama.ConsumerGroupSession
	message *sarama.ConsumerMessage
}

// saramaConsumer is a member; its handler gives each message to the next poll.
type saramaConsumer struct {
	group   sarama.ConsumerGroup
	stop    context.CancelFunc
	ended   chan struct{}
	arrived chan taken
	session sarama.ConsumerGroupSession
}

func (ofSarama) consumer(s settings) (client, error) {
	config := config(s)
	config.RackID = s["rack"]
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	config.Consumer.Group.Session.Timeout = 45 * time.Second
	group, err := sarama.NewConsumerGroup(strings.Split(s["bootstrap"], ","), s["group"], config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	consumer := &saramaConsumer{
		group: group, stop: stop, ended: make(chan struct{}), arrived: make(chan taken),
	}
	go func() {
		defer close(consumer.ended)
		for ctx.Err() == nil { // a session ends when the group rebalances, or when a call fails
			if group.Consume(ctx, strings.Split(s["topics"], ","), consumer) != nil {
				time.Sleep(pollFor)
			}
		}
	}()
	return consumer, nil
}

func (ofSarama) shareConsumer(settings) (client, error) { return nil, errNotHere }

func (c *saramaConsumer) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (c *saramaConsumer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c *saramaConsumer) ConsumeClaim(
	session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			select {
			case c.arrived <- taken{session, message}:
			case <-session.Context().Done():
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (c *saramaConsumer) poll() ([]string, error) {
	var values []string
	late := time.After(pollFor)
	for len(values) < pollMax {
		select {
		case one := <-c.arrived:
			one.session.MarkMessage(one.message, "")
			c.session = one.session
			values = append(values, string(one.message.Value))
		case <-late:
			return values, nil
		}
	}
	return values, nil
}

// commitOffsets sends them; the answer's errors are tried again with the next commit.
func (c *saramaConsumer) commitOffsets() error {
	if c.session != nil {
		c.session.Commit()
	}
	return nil
}

func (c *saramaConsumer) close() {
	c.stop()
	<-c.ended
	c.group.Close()
}

func (c *saramaConsumer) send(string, int32, string) error          { return errNotHere }
func (c *saramaConsumer) flush() ([]string, error)                  { return nil, errNotHere }
func (c *saramaConsumer) begin() error                              { return errNotHere }
func (c *saramaConsumer) commit() error                             { return errNotHere }
func (c *saramaConsumer) abort() error                              { return errNotHere }
func (c *saramaConsumer) offset(string, string, int32, int64) error { return errNotHere }
