import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's producer or consumer, which does what lines say while nodes of a cluster fail. Each line is answered with
 * one: "ok" and values, or "error".
 */
public class FailoverClient {
    private static final long LIMIT_MS = 90_000;
    private final List<Future<RecordMetadata>> sent = new ArrayList<>();
    private KafkaProducer<String, String> producer;
    private KafkaConsumer<String, String> consumer;

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
            case "produce" -> produce(words[1], words.length > 2 ? words[2] : null);
            case "consume" -> consume(words[1], words[2], words[3]);
            case "begin" -> producer.beginTransaction();
            case "send" -> sent.add(producer.send(new ProducerRecord<>(words[1], Integer.valueOf(words[2]), null, words[3])));
            case "flush" -> flush();
            case "commit" -> producer.commitTransaction();
            case "poll" -> {
                return poll();
            }
            case "commit-offsets" -> consumer.commitSync(Duration.ofMillis(LIMIT_MS));
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    /** Idempotent, with acks=all: both are the defaults. */
    private void produce(String bootstrap, String transactionalId) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("linger.ms", "5");
        settings.put("max.block.ms", Long.toString(LIMIT_MS));
        if (transactionalId != null) {
            settings.put("transactional.id", transactionalId);
        }
        producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        if (transactionalId != null) {
            producer.initTransactions();
        }
    }

    private void consume(String bootstrap, String group, String topic) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "50");
        consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(topic));
    }

    private void flush() throws Exception {
        producer.flush();
        for (Future<RecordMetadata> one : sent) {
            one.get();
        }
        sent.clear();
    }

    private String poll() {
        List<String> values = new ArrayList<>();
        for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
            values.add(one.value());
        }
        return String.join(" ", values);
    }

    private void close() {
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
        if (consumer != null) {
            consumer.close();
        }
    }
}
