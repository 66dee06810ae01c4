import static org.junit.jupiter.api.Assertions.assertEquals;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(Odradek.class)
@Timeout(60)
class InvoicesTest {
    @Test
    void anOrderBecomesAnInvoice() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", Odradek.bootstrapServers());
        var strings = new StringSerializer();
        try (var producer = new KafkaProducer<>(settings, strings, strings)) {
            producer.send(new ProducerRecord<>("orders", "table-7", "coffee")).get();
        }
        try (var invoices = new Invoices(Odradek.bootstrapServers())) {
            while (invoices.writeInvoices() == 0) {
                // the group forms
            }
        }
        var text = new StringDeserializer();
        try (var consumer = new KafkaConsumer<>(settings, text, text)) {
            var partition = new TopicPartition("invoices", 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            var invoice = consumer.poll(Duration.ofSeconds(10)).iterator().next();
            assertEquals("table-7", invoice.key());
            assertEquals("3", invoice.value());
        }
    }

    @Test
    void aLostAnswerDoublesNoOrder() throws Exception {
        Odradek.call("""
            {"type": "Inject", "faults": [
                {"api": "PRODUCE", "topic": "refunds", "cut": "before_answer"},
                {"api": "PRODUCE", "topic": "refunds", "partition": 0, "error": "NOT_LEADER_OR_FOLLOWER"}]}
            """);
        Map<String, Object> settings = Map.of("bootstrap.servers", Odradek.bootstrapServers());
        var strings = new StringSerializer();
        try (var producer = new KafkaProducer<>(settings, strings, strings)) {
            assertEquals(0, producer.send(new ProducerRecord<>("refunds", "coffee")).get().offset());
            assertEquals(1, producer.send(new ProducerRecord<>("refunds", "tea")).get().offset());
        }
    }
}
