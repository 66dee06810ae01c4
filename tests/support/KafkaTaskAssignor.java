// Apache Kafka's assignor of streams groups: a line of JSON in for each question, a line out with the
// targets of its members.
//
//   {"replicas": 1, "subtopologies": {"0": {"tasks": 4, "stateful": true}},
//    "members": [{"id": "m", "process": "p", "active": {"0": [0]}, "standby": {},
//                 "offsets": [["0", 3, 17]]}]}
//   {"m": {"active": {"0": [0, 1]}, "standby": {}}}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.coordinator.group.api.streams.assignor.GroupAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

public class KafkaTaskAssignor {
    private static final ObjectMapper JSON = new ObjectMapper();

    private record Topology(JsonNode json) implements TopologyDescriber {
        @Override
        public List<String> subtopologies() {
            List<String> names = new ArrayList<>();
            json.fieldNames().forEachRemaining(names::add);
            return names;
        }

        @Override
        public int maxNumInputPartitions(String name) {
            return json.get(name).get("tasks").asInt();
        }

        @Override
        public boolean isStateful(String name) {
            return json.get(name).get("stateful").asBoolean();
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
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>(); // as TargetAssignmentBuilder
        for (JsonNode member : question.get("members")) {
            members.put(member.get("id").asText(), new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), member.get("process").asText(), Map.of(),
                tasks(member.get("active")), tasks(member.get("standby")), Map.of(),
                offsets(member.get("offsets")), Map.of()));
        }
        AssignmentConfigsImpl configs = new AssignmentConfigsImpl(question.get("replicas").asInt(), List.of());
        GroupAssignment assignment = new StickyTaskAssignor().assign(
            new GroupSpecImpl(members, configs), new Topology(question.get("subtopologies")));
        ObjectNode answer = JSON.createObjectNode();
        assignment.members().forEach((memberId, member) -> {
            ObjectNode json = answer.putObject(memberId);
            write(json.putObject("active"), member.activeTasks());
            write(json.putObject("standby"), member.standbyTasks());
        });
        return answer;
    }

    private static Map<String, Set<Integer>> tasks(JsonNode json) {
        Map<String, Set<Integer>> tasks = new LinkedHashMap<>();
        for (Iterator<String> names = json.fieldNames(); names.hasNext();) {
            String name = names.next();
            Set<Integer> partitions = new HashSet<>();
            json.get(name).forEach(partition -> partitions.add(partition.asInt()));
            tasks.put(name, partitions);
        }
        return tasks;
    }

    private static Map<String, Map<Integer, Long>> offsets(JsonNode json) {
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        json.forEach(one -> offsets.computeIfAbsent(one.get(0).asText(), name -> new HashMap<>())
            .put(one.get(1).asInt(), one.get(2).asLong()));
        return offsets;
    }

    private static void write(ObjectNode json, Map<String, Set<Integer>> tasks) {
        tasks.forEach((name, partitions) -> {
            ArrayNode array = json.putArray(name);
            new TreeSet<>(partitions).forEach(array::add);
        });
    }
}
