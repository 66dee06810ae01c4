// A producer or a consumer of franz-go or sarama, which does what lines say while nodes of a cluster
// fail. Each line is answered with one: "ok" and words, or "error" and why. FailoverClient.java has
// the same lines. The argument is "franz-go" or "sarama".
package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

const (
	limit   = 90 * time.Second
	pollFor = 200 * time.Millisecond
	pollMax = 50
)

// client is a producer, a consumer or a share consumer; the lines of the others are errors.
type client interface {
	send(topic string, partition int32, value string) error
	// flush waits for what was sent, and names the errors of what was not delivered.
	flush() ([]string, error)
	begin() error
	commit() error
	abort() error
	offset(group, topic string, partition int32, offset int64) error
	poll() ([]string, error)
	commitOffsets() error
	close()
}

// settings of a client, from words of the form name=value.
type settings map[string]string

func (s settings) retries() (int, bool) {
	found, err := strconv.Atoi(s["retries"])
	return found, err == nil
}

func (s settings) timeout() (time.Duration, bool) {
	found, err := strconv.Atoi(s["timeout-ms"])
	return time.Duration(found) * time.Millisecond, err == nil
}

type maker interface {
	producer(settings) (client, error)
	consumer(settings) (client, error)
	shareConsumer(settings) (client, error)
}

var errNotHere = errors.New("the library does not have this")

func main() {
	var library maker = franz{}
	if os.Args[1] == "sarama" {
		library = ofSarama{}
	}
	var made client
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		found, err := obey(library, &made, strings.Split(lines.Text(), " "))
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println(strings.TrimSpace("ok " + strings.Join(found, " ")))
		}
	}
	if made != nil {
		made.close()
	}
}

func obey(library maker, made *client, words []string) (found []string, err error) {
	switch words[0] {
	case "produce":
		*made, err = library.producer(settingsOf(words[1:]))
	case "consume":
		*made, err = library.consumer(settingsOf(words[1:]))
	case "share":
		*made, err = library.shareConsumer(settingsOf(words[1:]))
	case "send":
		err = (*made).send(words[1], int32(number(words[2])), words[3])
	case "flush":
		found, err = (*made).flush()
	case "begin":
		err = (*made).begin()
	case "commit":
		err = (*made).commit()
	case "abort":
		err = (*made).abort()
	case "offset":
		err = (*made).offset(words[1], words[2], int32(number(words[3])), number(words[4]))
	case "poll":
		found, err = (*made).poll()
	case "commit-offsets":
		err = (*made).commitOffsets()
	default:
		err = fmt.Errorf("unknown: %s", words[0])
	}
	return found, err
}

func settingsOf(words []string) settings {
	found := settings{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		found[name] = value
	}
	return found
}

func number(word string) int64 {
	found, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return found
}
