// Apache Kafka's reconciliation of consumer groups' members: a line of JSON in for each question, a
// line out with the member after one step.
//
//   {"member": MEMBER, "target": {ID: [0]}, "targetEpoch": 3, "owners": {ID: {"0": 2}},
//    "changed": false, "owned": null or {ID: [0]}, "names": {NAME: ID}, "regexes": {TEXT: [NAME]}}
//   MEMBER: {"epoch": 2, "previous": 1, "state": 0, "topics": [NAME], "regex": TEXT,
//            "assigned": {ID: {"0": 2}}, "pending": {ID: {"1": 2}}}
//   {"member": MEMBER}   or   {"error": TEXT}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.FencedMemberEpochException;
import org.apache.kafka.common.message.ConsumerGroupHeartbeatRequestData;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.MemberState;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.modern.consumer.ResolvedRegularExpression;

public class KafkaReconciliation {
    private static final ObjectMapper JSON = new ObjectMapper();

    private record Topic(String name, Uuid id) implements CoordinatorMetadataImage.TopicMetadata {
        @Override
        public int partitionCount() {
            return 100;
        }

        @Override
        public List<String> partitionRacks(int partition) {
            return List.of();
        }
    }

    private record Topics(Map<String, Uuid> ids) implements CoordinatorMetadataImage {
        @Override
        public Set<Uuid> topicIds() {
            return new HashSet<>(ids.values());
        }

        @Override
        public Set<String> topicNames() {
            return ids.keySet();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(ids.get(name)).map(id -> new Topic(name, id));
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return ids.keySet().stream().filter(name -> ids.get(name).equals(id)).findFirst()
                .map(name -> new Topic(name, id));
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override
        public long version() {
            return 0;
        }

        @Override
        public boolean isEmpty() {
            return ids.isEmpty();
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
            write(answer.putObject("member"), reconcile(question));
        } catch (FencedMemberEpochException error) {
            return JSON.createObjectNode().put("error", error.getMessage());
        }
        return answer;
    }

    private static ConsumerGroupMember reconcile(JsonNode question) {
        Map<Uuid, Map<Integer, Integer>> owners = epochs(question.get("owners"));
        Map<String, ResolvedRegularExpression> regexes = new HashMap<>();
        question.get("regexes").properties().forEach(entry ->
            regexes.put(entry.getKey(), new ResolvedRegularExpression(texts(entry.getValue()), 0, 0)));
        Map<String, Uuid> ids = new HashMap<>();
        question.get("names").properties().forEach(entry ->
            ids.put(entry.getKey(), Uuid.fromString(entry.getValue().asText())));
        return new CurrentAssignmentBuilder(member(question.get("member")))
            .withMetadataImage(new Topics(ids))
            .withTargetAssignment(question.get("targetEpoch").asInt(), new Assignment(partitions(question.get("target"))))
            .withHasSubscriptionChanged(question.get("changed").asBoolean())
            .withResolvedRegularExpressions(regexes)
            .withCurrentPartitionEpoch((topicId, partition) ->
                owners.getOrDefault(topicId, Map.of()).getOrDefault(partition, -1))
            .withOwnedTopicPartitions(owned(question.get("owned")))
            .build();
    }

    private static ConsumerGroupMember member(JsonNode json) {
        return new ConsumerGroupMember.Builder("m")
            .setMemberEpoch(json.get("epoch").asInt())
            .setPreviousMemberEpoch(json.get("previous").asInt())
            .setState(MemberState.fromValue((byte) json.get("state").asInt()))
            .setSubscribedTopicNames(new ArrayList<>(texts(json.get("topics"))))
            .setSubscribedTopicRegex(json.get("regex").asText())
            .setAssignedPartitions(epochs(json.get("assigned")))
            .setPartitionsPendingRevocation(epochs(json.get("pending")))
            .build();
    }

    private static List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned(JsonNode json) {
        if (json.isNull()) return null;
        List<ConsumerGroupHeartbeatRequestData.TopicPartitions> owned = new ArrayList<>();
        partitions(json).forEach((topicId, indexes) -> owned.add(
            new ConsumerGroupHeartbeatRequestData.TopicPartitions()
                .setTopicId(topicId)
                .setPartitions(new ArrayList<>(indexes))));
        return owned;
    }

    private static Set<String> texts(JsonNode json) {
        Set<String> texts = new HashSet<>();
        json.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    private static Map<Uuid, Set<Integer>> partitions(JsonNode json) {
        Map<Uuid, Set<Integer>> partitions = new HashMap<>();
        json.properties().forEach(entry -> {
            Set<Integer> indexes = new HashSet<>();
            entry.getValue().forEach(index -> indexes.add(index.asInt()));
            partitions.put(Uuid.fromString(entry.getKey()), indexes);
        });
        return partitions;
    }

    // As Kafka reads them from its records: unmodifiable, and never the shared empty map.
    private static Map<Uuid, Map<Integer, Integer>> epochs(JsonNode json) {
        Map<Uuid, Map<Integer, Integer>> epochs = new HashMap<>();
        json.properties().forEach(entry -> {
            Map<Integer, Integer> ofTopic = new HashMap<>();
            entry.getValue().properties().forEach(one ->
                ofTopic.put(Integer.parseInt(one.getKey()), one.getValue().asInt()));
            epochs.put(Uuid.fromString(entry.getKey()), Collections.unmodifiableMap(ofTopic));
        });
        return Collections.unmodifiableMap(epochs);
    }

    private static void write(ObjectNode json, ConsumerGroupMember member) {
        json.put("epoch", member.memberEpoch());
        json.put("previous", member.previousMemberEpoch());
        json.put("state", member.state().value());
        ArrayNode topics = json.putArray("topics");
        member.subscribedTopicNames().forEach(topics::add);
        json.put("regex", member.subscribedTopicRegex());
        write(json.putObject("assigned"), member.assignedPartitions());
        write(json.putObject("pending"), member.partitionsPendingRevocation());
    }

    private static void write(ObjectNode json, Map<Uuid, Map<Integer, Integer>> epochs) {
        epochs.forEach((topicId, ofTopic) -> {
            ObjectNode topic = json.putObject(topicId.toString());
            ofTopic.forEach((partition, epoch) -> topic.put(partition.toString(), epoch));
        });
    }
}
