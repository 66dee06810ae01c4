// Apache Kafka's combination of batches of share-partitions: a line of JSON in for each question, a
// line out. A batch is [FIRST OFFSET, LAST OFFSET, DELIVERY COUNT, DELIVERY STATE].
//
//   [[STORED BATCH], [NEW BATCH], START OFFSET]
//   [COMBINED BATCH]

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.coordinator.share.PersisterStateBatchCombiner;
import org.apache.kafka.server.share.persister.PersisterStateBatch;

public class KafkaCombiner {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode question = JSON.readTree(line);
            var combiner = new PersisterStateBatchCombiner(
                batches(question.get(0)), batches(question.get(1)), question.get(2).asLong());
            ArrayNode answer = JSON.createArrayNode();
            for (PersisterStateBatch batch : combiner.combineStateBatches()) {
                answer.addArray().add(batch.firstOffset()).add(batch.lastOffset())
                    .add(batch.deliveryCount()).add(batch.deliveryState());
            }
            System.out.println(answer);
        }
    }

    private static List<PersisterStateBatch> batches(JsonNode batches) {
        List<PersisterStateBatch> found = new ArrayList<>();
        for (JsonNode batch : batches) {
            found.add(new PersisterStateBatch(batch.get(0).asLong(), batch.get(1).asLong(),
                (byte) batch.get(3).asInt(), (short) batch.get(2).asInt()));
        }
        return found;
    }
}
