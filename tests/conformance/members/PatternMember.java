// Kafka's VerifiableConsumer, for whom `--topic` is an expression that the broker resolves.

import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.HashMap;
import java.io.FileInputStream;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.tools.VerifiableConsumer;

public class PatternMember {
    private static final int CLOSE_TIMEOUT_MS = 30_000; // the tool's default
    // Of the tool's options only those are understood that a test gives.
    private static final Map<String, String> NAMES = Map.of(
        "--bootstrap-server", "bootstrap.servers",
        "--group-id", "group.id",
        "--group-protocol", "group.protocol",
        "--group-remote-assignor", "group.remote.assignor",
        "--group-instance-id", "group.instance.id",
        "--reset-policy", "auto.offset.reset");

    private static final class ByPattern extends KafkaConsumer<String, String> {
        ByPattern(Properties properties) {
            super(properties, new StringDeserializer(), new StringDeserializer());
        }

        @Override
        public void subscribe(Collection<String> topics, ConsumerRebalanceListener listener) {
            subscribe(new SubscriptionPattern(topics.iterator().next()), listener);
        }
    }

    public static void main(String[] args) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (int i = 0; i < args.length; i += 2) options.put(args[i], args[i + 1]);
        Properties properties = new Properties();
        try (FileInputStream file = new FileInputStream(options.get("--command-config"))) {
            properties.load(file);
        }
        properties.put("enable.auto.commit", "false");
        NAMES.forEach((option, name) -> {
            if (options.containsKey(option)) properties.put(name, options.get(option));
        });
        VerifiableConsumer consumer = new VerifiableConsumer(
            new ByPattern(properties), System.out, options.get("--topic"), -1, false, false, false,
            CLOSE_TIMEOUT_MS);
        Runtime.getRuntime().addShutdownHook(new Thread(consumer::close));
        consumer.run();
    }
}
