import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/** Unpacks a gzip stream, in hexadecimal, as Kafka does; the content in hexadecimal, or "error". */
public class GzipMembers {
    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            System.out.println(unpacked(HexFormat.of().parseHex(line)));
        }
    }

    private static String unpacked(byte[] data) {
        try (InputStream in = Compression.gzip().build().wrapForInput(
                ByteBuffer.wrap(data), (byte) 2, BufferSupplier.create())) {
            return HexFormat.of().formatHex(in.readAllBytes());
        } catch (IOException error) {
            return "error";
        }
    }
}
