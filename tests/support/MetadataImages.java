// Apache Kafka's own view of metadata files: reads those of a job, in their order, as one image, and
// prints the records of that image as Kafka would write them into a snapshot, a line of JSON each.
//
//   MetadataImages JOB...       FILE,FILE@END,...: snapshots and segments, these up to an offset
//
// The lines of each job follow a line "=".

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.writer.ImageWriterOptions;
import org.apache.kafka.image.writer.RecordListWriter;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

public class MetadataImages {
    public static void main(String[] jobs) throws Exception {
        for (String job : jobs) {
            System.out.println("=");
            MetadataDelta delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
            for (String file : job.split(",")) {
                String[] parts = file.split("@");
                read(delta, parts[0], parts.length > 1 ? Long.parseLong(parts[1]) : Long.MAX_VALUE);
            }
            MetadataImage image = delta.apply(MetadataProvenance.EMPTY);
            RecordListWriter writer = new RecordListWriter();
            image.write(writer, new ImageWriterOptions.Builder(image).build());
            for (ApiMessageAndVersion record : writer.records()) {
                System.out.println(MetadataRecordType.fromId(record.message().apiKey()) + " "
                    + record.version() + " "
                    + MetadataJsonConverters.writeJson(record.message(), record.version()));
            }
        }
    }

    private static void read(MetadataDelta delta, String file, long endOffset) throws Exception {
        try (FileRecords records = FileRecords.open(new File(file), false)) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                if (!batch.isControlBatch() && batch.baseOffset() < endOffset) {
                    for (Record record : batch) {
                        replay(delta, record);
                    }
                }
            }
        }
    }

    private static final List<ApiMessage> TRANSACTION = new ArrayList<>();
    private static boolean inTransaction = false;

    private static void replay(MetadataDelta delta, Record record) {
        ByteBufferAccessor data = new ByteBufferAccessor(record.value());
        ApiMessage message = MetadataRecordSerde.INSTANCE.read(data, record.valueSize()).message();
        switch (MetadataRecordType.fromId(message.apiKey())) {
            case BEGIN_TRANSACTION_RECORD -> inTransaction = true;
            case END_TRANSACTION_RECORD -> {
                TRANSACTION.forEach(delta::replay);
                TRANSACTION.clear();
                inTransaction = false;
            }
            case ABORT_TRANSACTION_RECORD -> {
                TRANSACTION.clear();
                inTransaction = false;
            }
            case NO_OP_RECORD -> { }
            default -> {
                if (inTransaction) {
                    TRANSACTION.add(message);
                } else {
                    delta.replay(message);
                }
            }
        }
    }
}
