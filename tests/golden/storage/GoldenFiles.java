// Apache Kafka's own classes write the golden files of this directory, and read odradek's.
//
//   java -cp 'KAFKA_4.3.0_JARS/*' GoldenFiles.java write DIRECTORY
//   java -cp 'KAFKA_4.3.0_JARS/*' GoldenFiles.java read FILE_WITH_BATCHES...
//   java -cp 'KAFKA_4.3.0_JARS/*' GoldenFiles.java read-snapshot FILE.snapshot
//   java -cp 'KAFKA_4.3.0_JARS/*' GoldenFiles.java hold-lock FILE      (until its input ends)
//   java -cp 'KAFKA_4.3.0_JARS/*' GoldenFiles.java try-lock FILE       (prints true or false)

import java.io.File;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesVersion;
import org.apache.kafka.metadata.properties.PropertiesUtils;
import org.apache.kafka.storage.internals.checkpoint.*;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.server.util.FileLock;

public class GoldenFiles {
    static final long BASE_TIME = 1_700_000_000_000L;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "write" -> write(Path.of(args[1]));
            case "read" -> { for (int i = 1; i < args.length; i++) read(Path.of(args[i])); }
            case "read-snapshot" -> readSnapshot(new File(args[1]));
            case "hold-lock" -> {
                System.out.println(new FileLock(new File(args[1])).tryLock());
                while (System.in.read() >= 0) { }
            }
            case "try-lock" -> System.out.println(new FileLock(new File(args[1])).tryLock());
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    // The same records as tests/support/golden_records.py makes.
    static void append(MemoryRecordsBuilder builder, int count) {
        for (int i = 0; i < count; i++) {
            byte[] key = i % 5 == 4 ? null : ("key-" + i).getBytes(StandardCharsets.UTF_8);
            byte[] value = i % 7 == 6 ? null : ("value-" + i + "-").repeat(i % 9).getBytes(StandardCharsets.UTF_8);
            Header[] headers = i % 3 != 2 ? new Header[0] : new Header[] {
                new RecordHeader("größe", ("" + i).getBytes(StandardCharsets.UTF_8)),
                new RecordHeader("null", null),
                new RecordHeader("", new byte[0])};
            builder.append(BASE_TIME + 37L * i - (i % 4) * 1000L, key, value, headers);
        }
    }

    static void batch(Path file, Compression compression, TimestampType type, long producerId,
                      boolean transactional, int count, int sequence) throws Exception {
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            ByteBuffer.allocate(1024), (byte) 2, compression, type, 1000L, BASE_TIME + 999_999L,
            producerId, (short) (producerId < 0 ? -1 : 3), producerId < 0 ? -1 : sequence,
            transactional, false, 7, 1 << 20);
        append(builder, count);
        save(file, builder.build().buffer());
    }

    static void save(Path file, ByteBuffer buffer) throws Exception {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        Files.write(file, bytes);
    }

    static void write(Path directory) throws Exception {
        Files.createDirectories(directory);
        Map<String, Compression> codecs = new LinkedHashMap<>();
        codecs.put("none", Compression.NONE);
        codecs.put("gzip", Compression.gzip().build());
        codecs.put("snappy", Compression.snappy().build());
        codecs.put("lz4", Compression.lz4().build());
        codecs.put("zstd", Compression.zstd().build());
        for (var codec : codecs.entrySet())
            batch(directory.resolve("batch-" + codec.getKey() + ".bin"), codec.getValue(),
                TimestampType.CREATE_TIME, -1L, false, 100, -1);
        batch(directory.resolve("batch-append-time.bin"), Compression.NONE,
            TimestampType.LOG_APPEND_TIME, -1L, false, 5, -1);
        batch(directory.resolve("batch-idempotent.bin"), Compression.NONE,
            TimestampType.CREATE_TIME, 4242L, false, 5, Integer.MAX_VALUE - 2);
        batch(directory.resolve("batch-transactional.bin"), Compression.lz4().build(),
            TimestampType.CREATE_TIME, 4242L, true, 5, 0);
        save(directory.resolve("batch-commit.bin"), MemoryRecords.withEndTransactionMarker(
            2000L, BASE_TIME, 7, 4242L, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 11)).buffer());
        save(directory.resolve("batch-abort.bin"), MemoryRecords.withEndTransactionMarker(
            2001L, BASE_TIME, 7, 4242L, (short) 3,
            new EndTransactionMarker(ControlRecordType.ABORT, 11)).buffer());
        indexes(directory);
        snapshot(directory);
        checkpoints(directory);
    }

    static void indexes(Path directory) throws Exception {
        File offsets = directory.resolve("00000000000000005000.index").toFile();
        File times = directory.resolve("00000000000000005000.timeindex").toFile();
        OffsetIndex offsetIndex = new OffsetIndex(offsets, 5000L, 4096);
        TimeIndex timeIndex = new TimeIndex(times, 5000L, 4096);
        for (int i = 1; i <= 50; i++) {
            offsetIndex.append(5000L + 10L * i, 4100 * i);
            timeIndex.maybeAppend(BASE_TIME + 500L * (i / 2), 5000L + 10L * i);
        }
        offsetIndex.close();
        timeIndex.close();
    }

    static void snapshot(Path directory) throws Exception {
        Map<Long, ProducerStateEntry> producers = new LinkedHashMap<>();
        producers.put(1L, entry(1L, (short) 0, -1, BASE_TIME, OptionalLong.empty(), 41, 120L, 4));
        producers.put(2L, entry(2L, (short) 5, 9, BASE_TIME + 1, OptionalLong.of(100L), 1, 130L, 3));
        producers.put(3L, new ProducerStateEntry(3L, (short) 6, 10, BASE_TIME + 2, OptionalLong.empty()));
        ProducerStateManager.writeSnapshot(
            directory.resolve("00000000000000000131.snapshot").toFile(), producers, true);
    }

    static ProducerStateEntry entry(long id, short epoch, int coordinatorEpoch, long time,
                                    OptionalLong txn, int lastSeq, long lastOffset, int delta) throws Exception {
        ProducerStateEntry entry = new ProducerStateEntry(id, epoch, coordinatorEpoch, time, txn);
        var add = ProducerStateEntry.class.getDeclaredMethod(
            "addBatch", short.class, int.class, long.class, int.class, long.class);
        add.setAccessible(true);
        add.invoke(entry, epoch, lastSeq, lastOffset, delta, time);
        return entry;
    }

    static void readSnapshot(File file) throws Exception {
        for (ProducerStateEntry entry : ProducerStateManager.readSnapshot(file))
            System.out.println(entry.producerId() + " " + entry.producerEpoch() + " "
                + entry.lastDataOffset() + " " + entry.firstDataOffset() + " " + entry.lastTimestamp()
                + " " + entry.coordinatorEpoch() + " " + entry.currentTxnFirstOffset().orElse(-1));
    }

    static void checkpoints(Path directory) throws Exception {
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        Map<TopicPartition, Long> offsets = new LinkedHashMap<>();
        offsets.put(new TopicPartition("orders", 0), 1500L);
        offsets.put(new TopicPartition("__consumer_offsets", 49), 0L);
        new OffsetCheckpointFile(
            directory.resolve("recovery-point-offset-checkpoint").toFile(), failures).write(offsets);
        new LeaderEpochCheckpointFile(
            directory.resolve("leader-epoch-checkpoint").toFile(), failures).write(
                List.of(new EpochEntry(0, 0L), new EpochEntry(3, 1500L), new EpochEntry(9, 1501L)));
        PartitionMetadataFile metadata = new PartitionMetadataFile(
            directory.resolve("partition.metadata").toFile(), failures);
        metadata.record(Uuid.fromString("MkTRaEKlQ9eO8mYRrvUYuA"));
        metadata.maybeFlush();
        new CleanShutdownFileHandler(directory.toString()).write(77L);
        PropertiesUtils.writePropertiesFile(
            new MetaProperties.Builder().setVersion(MetaPropertiesVersion.V1)
                .setClusterId("4L6g3nShT-eMCtK--X86sw").setNodeId(1)
                .setDirectoryId(Uuid.fromString("J8aAPcfLQt2bqs1JT_rMgQ")).build().toProperties(),
            directory.resolve("meta.properties").toString(), false);
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) return "null";
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return "x" + HexFormat.of().formatHex(bytes);
    }

    static void read(Path file) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file)));
        for (RecordBatch batch : records.batches()) {
            batch.ensureValid();
            System.out.println("batch " + batch.baseOffset() + " " + batch.lastOffset() + " "
                + batch.compressionType().name + " " + batch.timestampType() + " " + batch.maxTimestamp()
                + " " + batch.producerId() + " " + batch.producerEpoch() + " " + batch.baseSequence()
                + " " + batch.lastSequence() + " " + batch.isTransactional() + " " + batch.isControlBatch()
                + " " + batch.partitionLeaderEpoch());
            for (org.apache.kafka.common.record.internal.Record record : batch) {
                StringBuilder line = new StringBuilder("record " + record.offset() + " " + record.timestamp()
                    + " " + hex(record.key()) + " " + hex(record.value()));
                for (Header header : record.headers())
                    line.append(" ").append(hex(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))))
                        .append("=").append(header.value() == null ? "null" : hex(ByteBuffer.wrap(header.value())));
                System.out.println(line);
            }
        }
    }
}
