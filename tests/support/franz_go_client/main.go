// Writes a record and reads it back, logged in as a user: prints the value, or why it is refused.
//
// Arguments: bootstrap server, topic, mechanism, user, password or token, file of the authority
// (empty: no TLS), the TLS version ("1.2", "1.3"; empty: any).
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const limit = 20 * time.Second

func main() {
	value, err := writeAndRead(os.Args[1:])
	if err != nil {
		fmt.Println("refused:", err)
		os.Exit(1)
	}
	fmt.Println(value)
}

func writeAndRead(args []string) (string, error) {
	bootstrap, topic, mechanism, user, secret := args[0], args[1], args[2], args[3], args[4]
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap),
		kgo.SASL(login(mechanism, user, secret)),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequestRetries(2),
	}
	if authority := args[5]; authority != "" {
		config, err := trusting(authority, args[6])
		if err != nil {
			return "", err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return "", err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := client.Ping(ctx); err != nil { // it fails at once where ProduceSync goes on trying
		return "", err
	}
	record := &kgo.Record{Topic: topic, Value: []byte("franz-go")}
	if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
		return "", err
	}
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		return "", err
	}
	return string(fetches.Records()[0].Value), nil
}

func login(mechanism, user, secret string) sasl.Mechanism {
	switch mechanism {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: secret}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: secret}.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: secret}.AsMechanism()
	}
	return plain.Auth{User: user, Pass: secret}.AsMechanism()
}

func trusting(authority, version string) (*tls.Config, error) {
	pem, err := os.ReadFile(authority)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	config := &tls.Config{RootCAs: roots}
	switch version {
	case "1.2":
		config.MaxVersion = tls.VersionTLS12
	case "1.3":
		config.MinVersion = tls.VersionTLS13
	}
	return config, nil
}
