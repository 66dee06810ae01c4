import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.CompressionType;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MemoryRecordsBuilder;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Time;

/**
 * Message sets by Kafka 3.9's own classes, the last that write them. Lines in, lines out:
 *
 *   build MAGIC CODEC LOG_APPEND_TIME|- OFFSET:TIME:KEY:VALUE...   to hex    (key and value: hex, - is null)
 *   read HEX                                                       to MAGIC:TYPE:OFFSET:TIME:KEY:VALUE...
 *   down MAGIC FIRST_OFFSET HEX                                    to hex
 *
 * What Kafka throws is answered as "! exception".
 */
public class LegacyMessages {
    private static final HexFormat HEX = HexFormat.of();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    private static String answer(String[] words) {
        try {
            switch (words[0]) {
                case "build":
                    return build(words);
                case "read":
                    return read(MemoryRecords.readableRecords(bytes(words[1])));
                case "down":
                    return down(words);
                default:
                    return "! unknown command " + words[0];
            }
        } catch (Exception error) {
            return "! " + error.toString().replace('\n', ' ');
        }
    }

    private static String build(String[] words) {
        TimestampType type = words[3].equals("-") ? TimestampType.CREATE_TIME : TimestampType.LOG_APPEND_TIME;
        long appendTime = words[3].equals("-") ? -1 : Long.parseLong(words[3]);
        long baseOffset = Long.parseLong(words[4].split(":")[0]);
        Compression codec = Compression.of(CompressionType.forName(words[2])).build();
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), Byte.parseByte(words[1]), codec, type, baseOffset, appendTime);
        for (int i = 4; i < words.length; i++) {
            String[] parts = words[i].split(":", -1);
            builder.appendWithOffset(Long.parseLong(parts[0]), Long.parseLong(parts[1]),
                nullable(parts[2]), nullable(parts[3]));
        }
        return hex(builder.build().buffer());
    }

    private static String read(MemoryRecords records) {
        StringBuilder out = new StringBuilder();
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                out.append(out.length() == 0 ? "" : " ")
                    .append(batch.magic()).append(':').append(batch.timestampType().id).append(':')
                    .append(record.offset()).append(':').append(record.timestamp()).append(':')
                    .append(record.hasKey() ? hex(record.key()) : "-").append(':')
                    .append(record.hasValue() ? hex(record.value()) : "-");
            }
        }
        return out.toString();
    }

    private static String down(String[] words) {
        MemoryRecords stored = MemoryRecords.readableRecords(bytes(words[3]));
        return hex(stored.downConvert(Byte.parseByte(words[1]), Long.parseLong(words[2]), Time.SYSTEM)
            .records().buffer());
    }

    private static ByteBuffer bytes(String hex) {
        return ByteBuffer.wrap(HEX.parseHex(hex));
    }

    private static ByteBuffer nullable(String hex) {
        return hex.equals("-") ? null : bytes(hex);
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }
}
