import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.CorruptRecordException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;

/** A produced message set to the batch that Kafka 4.4 stores: "CODEC|- CreateTime|LogAppendTime hex" to hex or "! error". */
public class UpConversion {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            System.out.println(answer(words[0], words[1], HEX.parseHex(words[2])));
        }
    }

    private static String answer(String codec, String timestampType, byte[] data) {
        try {
            return convert(codec, TimestampType.forName(timestampType), data);
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            Errors code = Errors.forException(error);
            return "! " + (code == Errors.UNKNOWN_SERVER_ERROR ? Errors.forException(cause) : code).name();
        }
    }

    private static String convert(String codec, TimestampType timestampType, byte[] data) {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(data));
        CompressionType source = source(records);
        CompressionType target = codec.equals("-") ? source : CompressionType.forName(codec);
        LogValidator validator = new LogValidator(records, new TopicPartition("t", 0), Time.SYSTEM, source,
            Compression.of(target).build(), false, (byte) 2, timestampType, Long.MAX_VALUE, Long.MAX_VALUE, -1,
            AppendOrigin.CLIENT);
        ByteBuffer made = validator.validateMessagesAndAssignOffsets(
            PrimitiveRef.ofLong(0), new Silent(), BufferSupplier.create()).validatedRecords().buffer();
        byte[] bytes = new byte[made.remaining()];
        made.get(bytes);
        return HEX.formatHex(bytes);
    }

    /** What UnifiedLog finds out before it asks the validator. */
    private static CompressionType source(MemoryRecords records) {
        CompressionType source = CompressionType.NONE;
        for (MutableRecordBatch batch : records.batches()) {
            if (!batch.isValid()) {
                throw new CorruptRecordException("wrong checksum");
            }
            source = batch.compressionType() == CompressionType.NONE ? source : batch.compressionType();
        }
        return source;
    }

    private static class Silent implements LogValidator.MetricsRecorder {
        public void recordInvalidMagic() { }

        public void recordInvalidOffset() { }

        public void recordInvalidSequence() { }

        public void recordInvalidChecksums() { }

        public void recordNoKeyCompactedTopic() { }
    }
}
