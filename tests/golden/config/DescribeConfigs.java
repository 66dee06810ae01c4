import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/** Prints describe.jsonl: makes the topics `plain` and `own` at the bootstrap server given. */
public class DescribeConfigs {
    static final Map<String, String> OWN = Map.of("retention.ms", "1000",
        "cleanup.policy", "delete , compact", "internal.segment.bytes", "5000",
        "min.cleanable.dirty.ratio", "0.00001", "preallocate", "TRUE", "segment.bytes", "2000000");

    static String json(Object value) {
        return value == null ? "null" : "\"" + value.toString().replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }

    static String line(String resource, ConfigEntry entry) {
        String synonyms = entry.synonyms().stream()
            .map(s -> "[" + json(s.name()) + "," + json(s.value()) + "," + json(s.source()) + "]")
            .collect(Collectors.joining(",", "[", "]"));
        return "{\"resource\":" + json(resource) + ",\"name\":" + json(entry.name())
            + ",\"value\":" + json(entry.value()) + ",\"source\":" + json(entry.source())
            + ",\"type\":" + json(entry.type()) + ",\"read_only\":" + entry.isReadOnly()
            + ",\"sensitive\":" + entry.isSensitive() + ",\"synonyms\":" + synonyms + "}";
    }

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.createTopics(List.of(new NewTopic("plain", 1, (short) 1),
                new NewTopic("own", 1, (short) 1).configs(OWN))).all().get();
            Thread.sleep(1000);
            var resources = List.of(new ConfigResource(ConfigResource.Type.TOPIC, "plain"),
                new ConfigResource(ConfigResource.Type.TOPIC, "own"),
                new ConfigResource(ConfigResource.Type.BROKER, "1"));
            var found = admin.describeConfigs(resources,
                new DescribeConfigsOptions().includeSynonyms(true)).all().get();
            for (ConfigResource resource : resources) {
                Collection<ConfigEntry> entries = found.get(resource).entries();
                entries.stream().map(e -> line(resource.name(), e)).sorted().forEach(System.out::println);
            }
        }
    }
}
