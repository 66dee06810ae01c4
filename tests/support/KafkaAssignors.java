// Apache Kafka's server-side assignors of consumer and share groups: a line of JSON in for each question, a
// line out with the targets of its members.
//
//   {"assignor": "uniform", "homogeneous": true, "ordered": true, "topics": {ID: COUNT},
//    "members": [{"id": "m", "instance": null, "topics": [ID], "target": {ID: [0]}}]}
//   {"members": {"m": {ID: [0, 1]}}}   or   {"error": TEXT}
//
// `ordered`: the assignor meets members, topics and partitions in the order of the question, where
// otherwise the order of Java's hash tables decides.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

public class KafkaAssignors {
    private static final ObjectMapper JSON = new ObjectMapper();

    private record Topics(Map<Uuid, Integer> counts) implements SubscribedTopicDescriber {
        @Override
        public int numPartitions(Uuid topicId) {
            return counts.getOrDefault(topicId, -1);
        }

        @Override
        public Set<String> racksForPartition(Uuid topicId, int partition) {
            throw new UnsupportedOperationException("no assignor of Kafka asks for racks");
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            System.out.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
            System.out.flush();
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            write(answer.putObject("members"), assign(question));
        } catch (PartitionAssignorException error) {
            answer.put("error", error.getMessage());
        }
        return answer;
    }

    private static GroupAssignment assign(JsonNode question) {
        boolean ordered = question.get("ordered").asBoolean();
        Map<String, MemberSubscriptionAndAssignmentImpl> members = ordered ? new LinkedHashMap<>() : new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : question.get("members")) {
            String memberId = member.get("id").asText();
            Map<Uuid, Set<Integer>> target = target(member.get("target"), ordered);
            target.forEach((topicId, partitions) -> partitions.forEach(partition ->
                owners.computeIfAbsent(topicId, id -> new HashMap<>()).put(partition, memberId)));
            Set<Uuid> topics = ordered ? new LinkedHashSet<>() : new HashSet<>();
            member.get("topics").forEach(topicId -> topics.add(Uuid.fromString(topicId.asText())));
            members.put(memberId, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), text(member.get("instance")), topics, new Assignment(target)));
        }
        Map<Uuid, Integer> counts = new HashMap<>();
        for (Iterator<String> names = question.get("topics").fieldNames(); names.hasNext();) {
            String name = names.next();
            counts.put(Uuid.fromString(name), question.get("topics").get(name).asInt());
        }
        PartitionAssignor assignor = switch (question.get("assignor").asText()) {
            case "range" -> new RangeAssignor();
            case "uniform" -> new UniformAssignor();
            default -> new SimpleAssignor();
        };
        SubscriptionType type = question.get("homogeneous").asBoolean()
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        return assignor.assign(new GroupSpecImpl(members, type, owners), new Topics(counts));
    }

    private static Map<Uuid, Set<Integer>> target(JsonNode json, boolean ordered) {
        Map<Uuid, Set<Integer>> target = ordered ? new LinkedHashMap<>() : new HashMap<>();
        for (Iterator<String> names = json.fieldNames(); names.hasNext();) {
            String name = names.next();
            Set<Integer> partitions = ordered ? new LinkedHashSet<>() : new HashSet<>();
            json.get(name).forEach(partition -> partitions.add(partition.asInt()));
            target.put(Uuid.fromString(name), partitions);
        }
        return target;
    }

    private static Optional<String> text(JsonNode json) {
        return json.isNull() ? Optional.empty() : Optional.of(json.asText());
    }

    private static void write(ObjectNode json, GroupAssignment assignment) {
        assignment.members().forEach((memberId, member) -> {
            ObjectNode target = json.putObject(memberId);
            member.partitions().forEach((topicId, partitions) -> write(target.putArray(topicId.toString()), partitions));
        });
    }

    private static void write(ArrayNode json, Collection<Integer> partitions) {
        new TreeSet<>(partitions).forEach(json::add);
    }
}
