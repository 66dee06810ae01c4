import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Consumes orders and produces invoices. */
public final class Invoices implements AutoCloseable {
    private static final Map<String, Integer> PRICES = Map.of("coffee", 3, "tea", 2);
    private final KafkaConsumer<String, String> consumer;
    private final KafkaProducer<String, String> producer;

    public Invoices(String bootstrapServers) {
        consumer = new KafkaConsumer<>(
            Map.of(
                "bootstrap.servers", bootstrapServers,
                "group.id", "invoices",
                "auto.offset.reset", "earliest",
                "enable.auto.commit", "false"),
            new StringDeserializer(),
            new StringDeserializer());
        producer = new KafkaProducer<>(
            Map.of("bootstrap.servers", bootstrapServers),
            new StringSerializer(),
            new StringSerializer());
        consumer.subscribe(List.of("orders"));
    }

    /** Writes an invoice for each order that has come; returns their number. */
    public int writeInvoices() {
        var orders = consumer.poll(Duration.ofMillis(100));
        for (var order : orders) {
            var total = PRICES.get(order.value());
            producer.send(new ProducerRecord<>("invoices", order.key(), total.toString()));
        }
        producer.flush();
        consumer.commitSync();
        return orders.count();
    }

    @Override
    public void close() {
        consumer.close();
        producer.close();
    }
}
