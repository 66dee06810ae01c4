import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * One instance of Kafka Streams that counts words: "lines" to "counts". Arguments: memory or rocksdb, then
 * settings as key=value. States, restored records and failed threads go out by lines; it closes when its
 * input ends.
 */
public class WordCount {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        for (String setting : Arrays.asList(args).subList(1, args.length)) {
            String[] pair = setting.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        KafkaStreams streams = new KafkaStreams(topology(args[0]), settings);
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.setGlobalStateRestoreListener(new PrintedRestores());
        streams.setStandbyUpdateListener(new PrintedUpdates());
        streams.setUncaughtExceptionHandler(error -> {
            System.out.println("failed " + rootOf(error).getClass().getSimpleName());
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.start();
        while (System.in.read() >= 0) {
            continue;
        }
        streams.close();
    }

    private static Topology topology(String kind) {
        Materialized<String, Long, KeyValueStore<Bytes, byte[]>> store = Materialized.as("store");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.ByteArray(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(kind.equals("memory") ? store.withStoreType(Materialized.StoreType.IN_MEMORY) : store)
            .toStream()
            .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    private static Throwable rootOf(Throwable error) {
        return error.getCause() == null ? error : rootOf(error.getCause());
    }

    /** Prints every restored store with its number of records. */
    private static class PrintedRestores implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition partition, String store, long start, long end) {}

        @Override
        public void onBatchRestored(TopicPartition partition, String store, long end, long count) {}

        @Override
        public void onRestoreEnd(TopicPartition partition, String store, long total) {
            System.out.println("restored " + partition + " " + total);
        }
    }

    /** Prints what a standby reads: when its task becomes active, no more than the rest is restored. */
    private static class PrintedUpdates implements StandbyUpdateListener {
        @Override
        public void onUpdateStart(TopicPartition partition, String store, long start) {}

        @Override
        public void onBatchLoaded(
            TopicPartition partition, String store, TaskId task, long last, long count, long end) {
            System.out.println("restored " + partition + " " + count);
        }

        @Override
        public void onUpdateSuspended(
            TopicPartition partition, String store, long offset, long end, SuspendReason reason) {}
    }
}
