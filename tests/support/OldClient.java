import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A client of Kafka 0.9 or 0.10, which of the two the class path says. Commands come in by lines, what
 * became of them goes out by lines; what only 0.10 has is called by its name.
 */
public class OldClient {
    private static final long LIMIT_MS = 20_000;
    private static final long START_MS = 1_700_000_000_000L;
    private final String bootstrap;

    private OldClient(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    public static void main(String[] args) throws Exception {
        OldClient client = new OldClient(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                client.obey(line.split(" "), in);
            } catch (Exception error) {
                System.out.println("error " + error.toString().replace('\n', ' '));
            }
        }
    }

    private void obey(String[] words, BufferedReader in) throws Exception {
        switch (words[0]) {
            case "produce" -> produce(words[1], words[2], words[3], Integer.parseInt(words[4]));
            case "read" -> read(words[1], words[2], Integer.parseInt(words[3]), Long.parseLong(words[4]));
            case "consume" -> consume(words[1], words[2], Integer.parseInt(words[3]));
            case "committed" -> committed(words[1], words[2]);
            case "join" -> join(words[1], words[2], in);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    /** Records 0 to count - 1 to partition 0; every third has no key, every fifth no value. */
    private void produce(String topic, String codec, String acks, int count) throws Exception {
        Properties settings = settings();
        settings.put("acks", acks);
        settings.put("compression.type", codec);
        settings.put("linger.ms", "20");
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int n = 0; n < count; n++) {
                String key = n % 3 == 2 ? null : "key-" + n;
                sent.add(producer.send(record(topic, n, key, n % 5 == 4 ? null : "value-" + n + "-" + "x".repeat(n))));
            }
            for (Future<RecordMetadata> one : sent) {
                System.out.println("offset " + one.get().offset());
            }
        }
    }

    private ProducerRecord<String, String> record(String topic, int n, String key, String value) throws Exception {
        for (var constructor : ProducerRecord.class.getConstructors()) {
            if (constructor.getParameterCount() == 5) { // since 0.10: with a timestamp
                @SuppressWarnings("unchecked")
                var dated = (ProducerRecord<String, String>) constructor.newInstance(topic, 0, START_MS + n * 1000L, key, value);
                return dated;
            }
        }
        return new ProducerRecord<>(topic, 0, key, value);
    }

    /** So many records of partition 0 from `beginning`, `end` or an offset on; fewer when time is up. */
    private void read(String topic, String from, int count, long limitMs) throws Exception {
        TopicPartition at = new TopicPartition(topic, 0);
        try (var consumer = consumer(null)) {
            consumer.assign(Collections.singletonList(at));
            seek(consumer, at, from);
            System.out.println("position " + consumer.position(at));
            poll(consumer, count, limitMs);
            System.out.println("position " + consumer.position(at));
        }
    }

    /** Joins a group, reads on from what it committed, and commits. */
    private void consume(String topic, String group, int count) {
        try (var consumer = consumer(group)) {
            consumer.subscribe(Collections.singletonList(topic));
            poll(consumer, count, LIMIT_MS);
            consumer.commitSync();
            for (TopicPartition at : consumer.assignment()) {
                show(consumer.committed(at));
            }
        }
    }

    private void committed(String topic, String group) {
        try (var consumer = consumer(group)) {
            show(consumer.committed(new TopicPartition(topic, 0)));
        }
    }

    private static void show(OffsetAndMetadata committed) {
        System.out.println("committed " + (committed == null ? "nothing" : committed.offset() + " " + committed.metadata()));
    }

    /** Stays in a group, and tells its partitions after each rebalance, until there is another line. */
    private void join(String topic, String group, BufferedReader in) throws Exception {
        try (var consumer = consumer(group)) {
            consumer.subscribe(Collections.singletonList(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    String numbers = "";
                    for (TopicPartition at : partitions) {
                        numbers += " " + at.partition();
                    }
                    System.out.println("assigned" + numbers);
                }
            });
            while (!in.ready()) {
                consumer.poll(100);
            }
        }
        in.readLine();
        System.out.println("left");
    }

    private void poll(KafkaConsumer<String, String> consumer, int count, long limitMs) {
        long deadline = System.currentTimeMillis() + limitMs;
        int seen = 0;
        while (seen < count && System.currentTimeMillis() < deadline) {
            for (ConsumerRecord<String, String> one : consumer.poll(100)) {
                seen++;
                System.out.println("record " + one.offset() + " " + one.key() + " " + one.value() + " " + call(one, "timestamp"));
            }
        }
    }

    private static Object call(Object target, String name) {
        try {
            return target.getClass().getMethod(name).invoke(target);
        } catch (ReflectiveOperationException absent) {
            return "-";
        }
    }

    private static void seek(KafkaConsumer<String, String> consumer, TopicPartition at, String place) throws Exception {
        if (!place.equals("beginning") && !place.equals("end")) {
            consumer.seek(at, Long.parseLong(place));
            return;
        }
        String name = place.equals("end") ? "seekToEnd" : "seekToBeginning";
        for (Method method : KafkaConsumer.class.getMethods()) {
            if (method.getName().equals(name)) {
                boolean many = method.getParameterTypes()[0].isArray(); // as in 0.9
                method.invoke(consumer, many ? (Object) new TopicPartition[] {at} : Collections.singletonList(at));
            }
        }
    }

    private KafkaConsumer<String, String> consumer(String group) {
        Properties settings = settings();
        settings.put("group.id", group == null ? "" : group);
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", "6000");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private Properties settings() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        return settings;
    }
}
