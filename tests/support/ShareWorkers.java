import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of a share group that accept, release and reject records until all are done: "bootstrap topic group members
 * records seed". For each record it writes "settled partition offset" when the broker has confirmed that it is done,
 * "rejected partition offset" before that if it was rejected, and "again partition offset" if it comes after that. At
 * the end it writes "unknown partition offset" for those that come no more, but of which the broker has confirmed no
 * acknowledgement. The last line is "end".
 */
public class ShareWorkers {
    private static final int MAX_RELEASES = 3;
    private static final Set<String> SETTLED = ConcurrentHashMap.newKeySet();
    private static final Set<String> UNKNOWN = ConcurrentHashMap.newKeySet();
    private static final long QUIET_NANOS = Duration.ofSeconds(5).toNanos();
    private static int records;
    private static volatile long lastRecord = System.nanoTime();

    public static void main(String[] args) throws Exception {
        int members = Integer.parseInt(args[3]);
        records = Integer.parseInt(args[4]);
        long seed = Long.parseLong(args[5]);
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < members; number++) {
            Random chance = new Random(seed + number);
            Thread thread = new Thread(() -> work(args[0], args[1], args[2], chance));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        UNKNOWN.removeAll(SETTLED);
        UNKNOWN.forEach(name -> say("unknown " + name));
        say("end");
    }

    private static void work(String bootstrap, String topic, String group, Random chance) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "50");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(topic));
            while (!done()) {
                try {
                    step(consumer, chance);
                } catch (KafkaException error) {
                    say("failed " + error.getClass().getSimpleName());
                }
            }
        }
    }

    /** All are settled, or nothing comes any more: then some acknowledgements were taken, and not confirmed. */
    private static synchronized boolean done() {
        if (SETTLED.size() == records) {
            return true;
        }
        if (System.nanoTime() - lastRecord <= QUIET_NANOS) {
            return false;
        }
        Set<String> seen = new HashSet<>(SETTLED);
        seen.addAll(UNKNOWN);
        return seen.size() == records;
    }

    private static void step(KafkaShareConsumer<String, String> consumer, Random chance) {
        Map<Integer, List<String>> settling = new HashMap<>();
        Set<String> rejected = new HashSet<>();
        for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
            lastRecord = System.nanoTime();
            String name = record.partition() + " " + record.offset();
            if (SETTLED.contains(name)) {
                say("again " + name);
            }
            AcknowledgeType type = drawn(record, chance);
            consumer.acknowledge(record, type);
            if (type == AcknowledgeType.REJECT) {
                rejected.add(name);
            }
            if (type != AcknowledgeType.RELEASE) {
                settling.computeIfAbsent(record.partition(), each -> new ArrayList<>()).add(name);
            }
        }
        try {
            Map<TopicIdPartition, Optional<KafkaException>> answers = consumer.commitSync();
            answers.forEach((partition, error) -> {
                if (error.isEmpty()) {
                    for (String name : settling.getOrDefault(partition.partition(), List.of())) {
                        if (rejected.contains(name)) {
                            say("rejected " + name);
                        }
                        settle(name);
                    }
                    settling.remove(partition.partition());
                }
            });
        } finally {
            settling.values().forEach(UNKNOWN::addAll);
        }
    }

    private static AcknowledgeType drawn(ConsumerRecord<String, String> record, Random chance) {
        int drawn = chance.nextInt(10);
        if (drawn < 2 && record.deliveryCount().orElse((short) 1) <= MAX_RELEASES) {
            return AcknowledgeType.RELEASE;
        }
        return drawn < 9 ? AcknowledgeType.ACCEPT : AcknowledgeType.REJECT;
    }

    private static void settle(String name) {
        if (SETTLED.add(name)) {
            say("settled " + name);
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }
}
