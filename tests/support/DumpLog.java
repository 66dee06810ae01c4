import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.kafka.tools.DumpLogSegments;

/**
 * Apache Kafka's own dump tool, many times in one process. Reads the arguments of one run per line, parted by tabs, and
 * answers with the exit code and what was written to both streams, in base64.
 */
public class DumpLog {
    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        PrintStream complaints = System.err;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            int code = 0;
            String died = "";
            try {
                DumpLogSegments.main(line.split("\t"));
            } catch (Throwable error) {
                code = 1;
                died = error.toString();
            }
            System.setOut(answers);
            System.setErr(complaints);
            Base64.Encoder base64 = Base64.getEncoder();
            answers.println(code + " " + base64.encodeToString(out.toByteArray()) + " "
                + base64.encodeToString(err.toByteArray()) + " "
                + base64.encodeToString(died.getBytes(StandardCharsets.UTF_8)));
            answers.flush();
        }
    }
}
