import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;

/**
 * Hashes of topics, as Kafka's group coordinator makes them. A line is "id name racks racks ...", one
 * word of racks for each partition: hex of UTF-8, with commas between the racks, "-" where there are
 * none. The answer is a hash for each line, then one for a group that subscribes to all.
 */
public class TopicHash {
    record Topic(String name, Uuid id, List<List<String>> racks) implements CoordinatorMetadataImage.TopicMetadata {
        public int partitionCount() {
            return racks.size();
        }

        public List<String> partitionRacks(int partition) {
            return new ArrayList<>(racks.get(partition));
        }
    }

    record Image(Topic topic) implements CoordinatorMetadataImage {
        public Set<Uuid> topicIds() {
            return Set.of(topic.id());
        }

        public Set<String> topicNames() {
            return Set.of(topic.name());
        }

        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.of(topic);
        }

        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.of(topic);
        }

        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        public long version() {
            return 0;
        }

        public boolean isEmpty() {
            return false;
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Map<String, Long> all = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Topic topic = topic(line.split(" "));
            long hash = Utils.computeTopicHash(topic.name(), new Image(topic));
            System.out.println(hash);
            all.put(topic.name(), hash);
        }
        System.out.println(Utils.computeGroupHash(all));
    }

    private static Topic topic(String[] words) {
        byte[] id = HexFormat.of().parseHex(words[0]);
        java.nio.ByteBuffer buffer = java.nio.ByteBuffer.wrap(id);
        List<List<String>> racks = new ArrayList<>();
        for (int i = 2; i < words.length; i++) {
            racks.add(words[i].equals("-") ? List.of() : Arrays.stream(words[i].split(",", -1)).map(TopicHash::text).toList());
        }
        return new Topic(words[1], new Uuid(buffer.getLong(), buffer.getLong()), racks);
    }

    private static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex), StandardCharsets.UTF_8);
    }
}
