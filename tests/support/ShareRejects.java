import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a share group that gives records up: "bootstrap topic group records". Values are numbers. It rejects the
 * odd ones, releases multiples of ten until they do not come any more, and accepts the others. It ends when each record
 * has come as often as it should, and says so.
 */
public class ShareRejects {
    private static final int MAX_DELIVERIES = 3;

    public static void main(String[] args) throws Exception {
        int records = Integer.parseInt(args[3]);
        int left = records + (records + 9) / 10 * (MAX_DELIVERIES - 1);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[2]);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        try (KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings)) {
            consumer.subscribe(List.of(args[1]));
            while (left > 0) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    consumer.acknowledge(record, typeOf(Integer.parseInt(record.value())));
                    left--;
                }
                consumer.commitSync();
            }
        }
        System.out.println("done");
    }

    private static AcknowledgeType typeOf(int number) {
        if (number % 10 == 0) {
            return AcknowledgeType.RELEASE;
        }
        return number % 2 == 1 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT;
    }
}
