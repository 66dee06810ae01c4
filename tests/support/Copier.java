import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Copies with the Java clients of 2.8 or later, which of them the class path says. Arguments and output are
 * those of tests/crash/copiers/task.py, where they are described.
 */
public class Copier {
    private static final int COPY_PARTITIONS = 2;
    private static final int MAX_RECORDS = 20;
    private static final double ABORTED_SHARE = 0.1;
    // Tells this process from earlier ones: a process id may come again.
    private static final long BEGAN_MS = System.currentTimeMillis();
    private final String bootstrap;
    private final String source;
    private final String target;
    private final String name;
    private final String protocol;
    private final String hold;
    private int transactions = 0;
    private boolean hasHeld = false;

    private Copier(String[] args) {
        bootstrap = args[0];
        source = args[1];
        target = args[2];
        name = args[3];
        protocol = args[4];
        hold = args[5];
    }

    public static void main(String[] args) {
        try {
            new Copier(args).copy();
        } catch (Exception error) {
            boolean isFenced = error instanceof ProducerFencedException || error instanceof InvalidProducerEpochException;
            say((isFenced ? "fenced " : "failed ") + error.getClass().getSimpleName());
        }
        Runtime.getRuntime().halt(0); // the clients would wait for a broker that may be dead
    }

    private void copy() throws IOException {
        var producer = new KafkaProducer<>(producerSettings(), new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        var consumer = new KafkaConsumer<>(consumerSettings(), new StringDeserializer(), new StringDeserializer());
        // With a listener, the consumer of either protocol rebalances in `poll` only, never inside a transaction.
        consumer.subscribe(Collections.singletonList(source), new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}
        });
        while (true) {
            List<ConsumerRecord<String, String>> origins = new ArrayList<>();
            consumer.poll(Duration.ofMillis(200)).forEach(origins::add);
            if (!origins.isEmpty()) {
                copyBatch(consumer, producer, origins);
            }
        }
    }

    private void copyBatch(
        KafkaConsumer<String, String> consumer,
        KafkaProducer<String, String> producer,
        List<ConsumerRecord<String, String>> origins
    ) throws IOException {
        String transaction = name + "-" + BEGAN_MS + "-" + ++transactions;
        boolean mustAbort = ThreadLocalRandom.current().nextDouble() < ABORTED_SHARE && hold.equals("never");
        producer.beginTransaction();
        try {
            Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
            for (int index = 0; index < origins.size(); index++) {
                if (index == origins.size() / 2) {
                    producer.flush();
                    waitBefore("records", transaction);
                }
                ConsumerRecord<String, String> origin = origins.get(index);
                int number = Integer.parseInt(origin.value());
                String value = origin.partition() + " " + origin.offset() + " " + number + " " + transaction + " " + origins.size();
                producer.send(new ProducerRecord<>(target, number % COPY_PARTITIONS, null, value));
                ends.put(new TopicPartition(source, origin.partition()), new OffsetAndMetadata(origin.offset() + 1));
            }
            producer.flush();
            waitBefore("offsets", transaction);
            producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            waitBefore("end", transaction);
            if (mustAbort) {
                producer.abortTransaction();
                for (int index = origins.size() - 1; index >= 0; index--) {
                    ConsumerRecord<String, String> origin = origins.get(index);
                    consumer.seek(new TopicPartition(source, origin.partition()), origin.offset());
                }
            } else {
                producer.commitTransaction();
            }
        } catch (ProducerFencedException error) {
            throw error;
        } catch (KafkaException error) {
            say("failed " + error.getClass().getSimpleName());
            producer.abortTransaction();
            throw error;
        }
        say((mustAbort ? "aborted " : "committed ") + transaction);
    }

    private void waitBefore(String step, String transaction) throws IOException {
        if (hold.equals(step) && !hasHeld) {
            hasHeld = true;
            say("holding " + transaction);
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private Properties producerSettings() {
        Properties settings = settings();
        settings.put("transactional.id", name);
        settings.put("transaction.timeout.ms", "10000");
        settings.put("delivery.timeout.ms", "30000");
        settings.put("max.block.ms", "30000");
        return settings;
    }

    private Properties consumerSettings() {
        Properties settings = settings();
        settings.put("group.id", name);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        settings.put("max.poll.records", Integer.toString(MAX_RECORDS));
        settings.put("default.api.timeout.ms", "30000");
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", "3000");
            settings.put("heartbeat.interval.ms", "500");
        } else { // the broker sets them for the consumer protocol
            settings.put("group.protocol", protocol);
        }
        return settings;
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", "10000");
        settings.put("retry.backoff.ms", "50");
        settings.put("reconnect.backoff.max.ms", "200");
        return settings;
    }
}
