import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Java's clients; tests/proof/clients/task.py says what they do, and tests/proof/history.py what they write. Their
 * transactions are of version 2 if the broker has it.
 */
public class HistoryClient {
    private static final Map<String, Integer> PARTITIONS = Map.of("kept", 3, "moved", 2);
    private final String bootstrap;
    private final String name;
    private final String process;
    private final String role;
    private final String group;
    private final String protocol;
    private final Random random;
    private int values = 0;
    private int lines = 0;
    private volatile boolean mustEnd = false;

    private record Send(String topic, int partition, String value) {}

    private HistoryClient(String[] args) {
        bootstrap = args[0];
        name = args[1];
        process = name + "." + args[2];
        role = args[3];
        group = args[4];
        protocol = args[5];
        random = new Random(process.hashCode());
    }

    public static void main(String[] args) throws Exception {
        HistoryClient client = new HistoryClient(args);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            client.mustEnd = true;
            try {
                main.join(20_000);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }));
        try {
            client.run();
        } catch (RuntimeException error) { // of Kafka, or of a client that is used after another error
            System.err.println(client.process + ": " + error);
            Runtime.getRuntime().halt(0); // the clients would wait for a broker that may be dead
        }
    }

    private void run() throws InterruptedException {
        switch (role) {
            case "write" -> write();
            case "share" -> share();
            default -> work();
        }
    }

    private void write() throws InterruptedException {
        try (var producer = new KafkaProducer<>(settings(), new StringSerializer(), new StringSerializer())) {
            while (!mustEnd) {
                for (int count = 0; count < 3; count++) {
                    Send send = next("kept");
                    int number = begin("work", System.nanoTime(), "\"sends\":[" + row(send, null) + "]");
                    producer.send(new ProducerRecord<>(send.topic, send.partition, null, send.value), (metadata, error) -> {
                        if (error == null) {
                            add(number, "ok", "\"sends\":[" + row(send, metadata.offset()) + "]");
                        }
                    });
                }
                Thread.sleep(100);
            }
        }
    }

    private void work() throws InterruptedException {
        KafkaProducer<String, String> producer = null;
        if (role.equals("transact")) {
            Properties settings = settings();
            settings.put("transactional.id", name);
            settings.put("transaction.timeout.ms", "10000");
            producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
            producer.initTransactions();
        }
        try (var consumer = new KafkaConsumer<>(consumerSettings(), new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of("kept", "moved"), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    var metadata = consumer.groupMetadata();
                    note("assign", String.format(
                        "\"group\":\"%s\",\"member\":\"%s\",\"generation\":%d,\"keys\":%s,\"new\":%s",
                        group, metadata.memberId(), metadata.generationId(), keys(consumer.assignment()), keys(partitions)));
                }
            });
            while (!mustEnd) {
                long began = System.nanoTime();
                List<ConsumerRecord<String, String>> polls = new ArrayList<>();
                consumer.poll(Duration.ofMillis(200)).forEach(polls::add);
                if (producer != null) {
                    transact(began, polls, consumer, producer);
                    Thread.sleep(100);
                } else if (!polls.isEmpty()) {
                    add(begin("work", began, "\"polls\":" + rows(polls)), "ok", "\"polls\":" + rows(polls));
                    commit(polls, consumer);
                }
            }
        }
    }

    private void commit(List<ConsumerRecord<String, String>> polls, KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> ends = ends(polls);
        int number = begin("commit", System.nanoTime(), "\"group\":\"" + group + "\",\"offsets\":" + offsets(ends));
        try {
            consumer.commitSync(ends);
        } catch (KafkaException error) {
            return; // somebody else reads on from where this group is
        }
        add(number, "ok", "\"group\":\"" + group + "\"");
    }

    private void transact(
        long began,
        List<ConsumerRecord<String, String>> polls,
        KafkaConsumer<String, String> consumer,
        KafkaProducer<String, String> producer
    ) {
        List<Send> sends = new ArrayList<>();
        int size = 1 + random.nextInt(4);
        while (sends.size() < size) {
            sends.add(next("moved"));
        }
        Map<TopicPartition, OffsetAndMetadata> ends = ends(polls);
        String planned = sends.stream().map(send -> row(send, null)).collect(Collectors.joining(",", "[", "]"));
        int number = begin("work", began, String.format(
            "\"is_transaction\":true,\"polls\":%s,\"sends\":%s,\"group\":\"%s\",\"offsets\":%s",
            rows(polls), planned, group, offsets(ends)));
        try {
            producer.beginTransaction();
            for (Send send : sends) {
                producer.send(new ProducerRecord<>(send.topic, send.partition, null, send.value));
            }
            if (!ends.isEmpty()) {
                producer.sendOffsetsToTransaction(ends, consumer.groupMetadata());
            }
            if (random.nextDouble() < 0.15) {
                producer.abortTransaction();
                add(number, "fail", "\"sends\":" + planned);
                Map<TopicPartition, Long> starts = new HashMap<>();
                polls.forEach(each -> starts.putIfAbsent(new TopicPartition(each.topic(), each.partition()), each.offset()));
                starts.forEach((place, offset) -> consumer.seek(place, offset.longValue()));
                note("assign", "\"new\":" + keys(starts.keySet()));
                return;
            }
            producer.flush();
            add(number, "commit", "\"sends\":" + planned);
            producer.commitTransaction();
        } catch (KafkaException error) {
            producer.abortTransaction();
            throw error;
        }
        add(number, "ok", "\"sends\":" + planned);
    }

    private void share() {
        Properties settings = settings();
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "40");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of("kept"));
            while (!mustEnd) {
                long began = System.nanoTime();
                Map<Integer, List<String>> done = new LinkedHashMap<>();
                List<String> delivered = new ArrayList<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    String place = String.format("[\"%s\",%d,%d]", record.topic(), record.partition(), record.offset());
                    delivered.add(place);
                    boolean isReleased = random.nextInt(10) == 0 && record.deliveryCount().orElse((short) 1) <= 2;
                    consumer.acknowledge(record, isReleased ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (!isReleased) {
                        done.computeIfAbsent(record.partition(), each -> new ArrayList<>()).add(place);
                    }
                }
                if (delivered.isEmpty()) {
                    continue;
                }
                String fields = "\"group\":\"" + group + "\",\"records\":";
                add(begin("delivered", began, fields + delivered), "ok", fields + delivered);
                Map<TopicIdPartition, Optional<KafkaException>> answers = consumer.commitSync();
                answers.forEach((partition, error) -> {
                    if (error.isEmpty() && done.containsKey(partition.partition())) {
                        note("settled", fields + done.get(partition.partition()));
                    }
                });
            }
        }
    }

    // -- lines ----------------------------------------------------------------------------------------------------

    private Send next(String topic) {
        return new Send(topic, random.nextInt(PARTITIONS.get(topic)), process + "-" + ++values);
    }

    private void note(String kind, String fields) {
        write(++lines, System.nanoTime(), "ok", "\"kind\":\"" + kind + "\"," + fields);
    }

    private synchronized int begin(String kind, long at, String fields) {
        write(++lines, at, "invoke", "\"kind\":\"" + kind + "\"," + fields);
        return lines;
    }

    private void add(int number, String step, String fields) {
        write(number, System.nanoTime(), step, fields);
    }

    private synchronized void write(int number, long at, String step, String fields) {
        System.out.print(String.format("{\"id\":%d,\"at\":%d,\"is\":\"%s\",%s}\n", number, at, step, fields));
        System.out.flush();
    }

    private static String row(Send send, Long offset) {
        return String.format("[\"%s\",%d,\"%s\",%s]", send.topic, send.partition, send.value, offset);
    }

    private static String rows(List<ConsumerRecord<String, String>> polls) {
        return polls.stream()
            .map(each -> String.format("[\"%s\",%d,%d,\"%s\"]", each.topic(), each.partition(), each.offset(), each.value()))
            .collect(Collectors.joining(",", "[", "]"));
    }

    private static Map<TopicPartition, OffsetAndMetadata> ends(List<ConsumerRecord<String, String>> polls) {
        Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
        polls.forEach(each ->
            ends.put(new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1)));
        return ends;
    }

    private static String offsets(Map<TopicPartition, OffsetAndMetadata> ends) {
        return ends.entrySet().stream()
            .map(each -> String.format(
                "[\"%s\",%d,%d]", each.getKey().topic(), each.getKey().partition(), each.getValue().offset()))
            .collect(Collectors.joining(",", "[", "]"));
    }

    private static String keys(Collection<TopicPartition> places) {
        return places.stream()
            .map(each -> String.format("[\"%s\",%d]", each.topic(), each.partition()))
            .collect(Collectors.joining(",", "[", "]"));
    }

    // -- settings -------------------------------------------------------------------------------------------------

    private Properties consumerSettings() {
        Properties settings = settings();
        settings.put("group.id", group);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("isolation.level", "read_committed");
        settings.put("max.poll.records", "40");
        settings.put("default.api.timeout.ms", "20000");
        if (protocol.equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            String assignor = protocol.equals("eager") ? "RangeAssignor" : "CooperativeStickyAssignor";
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            settings.put("session.timeout.ms", "6000");
            settings.put("heartbeat.interval.ms", "500");
        }
        return settings;
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("request.timeout.ms", "5000");
        settings.put("retry.backoff.ms", "50");
        settings.put("reconnect.backoff.max.ms", "200");
        if (!role.equals("share") && !role.equals("group")) {
            settings.put("delivery.timeout.ms", "20000");
            settings.put("max.block.ms", "20000");
        }
        return settings;
    }
}
