import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's producer, consumer or share consumer, which does what lines say while nodes of a cluster fail. Each line is
 * answered with one: "ok" and words, or "error" and why. The programs of the other libraries have the same lines:
 *
 * <ul>
 *   <li>produce, consume, share: name=value; of bootstrap, client, transactional-id, retries, timeout-ms (of a
 *       request), group, topics, rack
 *   <li>send TOPIC PARTITION VALUE; flush: names the errors of what was not delivered
 *   <li>begin; offset GROUP TOPIC PARTITION OFFSET; commit; abort
 *   <li>poll: values; commit-offsets: of what was polled
 * </ul>
 */
public class FailoverClient {
    private static final String LIMIT_MS = "90000";
    private static final Duration LIMIT = Duration.ofSeconds(90);
    private static final Duration POLL = Duration.ofMillis(200);
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;
    private KafkaShareConsumer<String, String> shareConsumer;

    public static void main(String[] args) throws Exception {
        FailoverClient client = new FailoverClient();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                System.out.println(("ok " + client.obey(line.split(" "))).strip());
            } catch (Exception error) {
                System.out.println("error " + error.toString().replace('\n', ' '));
            }
        }
        client.close();
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "produce" -> produce(settings(words));
            case "consume" -> consume(settings(words));
            case "share" -> share(settings(words));
            case "begin" -> producer.beginTransaction();
            case "send" -> sent.add(producer.send(new ProducerRecord<>(words[1], Integer.valueOf(words[2]), null, words[3])));
            case "flush" -> {
                return flush();
            }
            case "commit" -> producer.commitTransaction();
            case "abort" -> producer.abortTransaction();
            case "offset" -> producer.sendOffsetsToTransaction(
                    Map.of(
                            new TopicPartition(words[2], Integer.parseInt(words[3])),
                            new OffsetAndMetadata(Long.parseLong(words[4]))),
                    new ConsumerGroupMetadata(words[1]));
            case "poll" -> {
                return poll();
            }
            case "commit-offsets" -> commitOffsets();
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    private static Map<String, String> settings(String[] words) {
        Map<String, String> found = new HashMap<>();
        for (int index = 1; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            found.put(pair[0], pair[1]);
        }
        return found;
    }

    private static Properties common(Map<String, String> given) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", given.get("bootstrap"));
        settings.put("client.id", given.get("client"));
        if (given.containsKey("timeout-ms")) {
            settings.put("request.timeout.ms", given.get("timeout-ms"));
        }
        return settings;
    }

    /** Idempotent, with acks=all: both are the defaults. */
    private void produce(Map<String, String> given) {
        Properties settings = common(given);
        settings.put("linger.ms", "5");
        settings.put("max.block.ms", LIMIT_MS);
        if (given.containsKey("retries")) {
            settings.put("retries", given.get("retries"));
        }
        if (given.containsKey("transactional-id")) {
            settings.put("transactional.id", given.get("transactional-id"));
        }
        producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        if (given.containsKey("transactional-id")) {
            producer.initTransactions();
        }
    }

    private static Properties reading(Map<String, String> given) {
        Properties settings = common(given);
        settings.put("group.id", given.get("group"));
        settings.put("max.poll.records", "50");
        return settings;
    }

    private void consume(Map<String, String> given) {
        Properties settings = reading(given);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("client.rack", given.getOrDefault("rack", ""));
        consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(given.get("topics").split(",")));
    }

    /** Accepts what it polls. */
    private void share(Map<String, String> given) {
        shareConsumer = new KafkaShareConsumer<>(reading(given), new StringDeserializer(), new StringDeserializer());
        shareConsumer.subscribe(List.of(given.get("topics").split(",")));
    }

    private String flush() throws Exception {
        producer.flush();
        List<String> failed = new ArrayList<>();
        for (Future<RecordMetadata> one : sent) {
            try {
                one.get();
            } catch (ExecutionException error) {
                failed.add(error.getCause().getClass().getSimpleName());
            }
        }
        sent.clear();
        return String.join(" ", failed);
    }

    private String poll() {
        ConsumerRecords<String, String> records = consumer != null ? consumer.poll(POLL) : shareConsumer.poll(POLL);
        List<String> values = new ArrayList<>();
        for (ConsumerRecord<String, String> one : records) {
            values.add(one.value());
        }
        return String.join(" ", values);
    }

    private void commitOffsets() {
        if (consumer != null) {
            consumer.commitSync(LIMIT);
        } else {
            shareConsumer.commitSync(LIMIT);
        }
    }

    private void close() {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        if (consumer != null) {
            consumer.close();
        }
        if (shareConsumer != null) {
            shareConsumer.close();
        }
    }
}
