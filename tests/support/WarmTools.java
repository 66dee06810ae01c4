// Kafka's command-line tools, one after the other in one warm JVM. A line in: the class of a tool
// and its arguments, divided by tabs. Out: a line "EXIT_CODE BYTES", and what the tool wrote to both
// streams.

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.internals.Exit;

public class WarmTools {
    private static final class Ended extends RuntimeException {
        final int code;

        Ended(int code) {
            super(null, null, false, false);
            this.code = code;
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Exit.Procedure end = (code, message) -> {
            throw new Ended(code);
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        BufferedReader lines = new BufferedReader(
            new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            ByteArrayOutputStream written = new ByteArrayOutputStream();
            PrintStream both = new PrintStream(written, true, StandardCharsets.UTF_8);
            System.setOut(both);
            System.setErr(both);
            int code = run(line.split("\t", -1), both);
            both.flush();
            answers.printf("%d %d%n", code, written.size());
            written.writeTo(answers);
            answers.flush();
        }
    }

    private static int run(String[] words, PrintStream both) throws Exception {
        String[] arguments = Arrays.copyOfRange(words, 1, words.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class)
                .invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof Ended) {
                return ((Ended) failed.getCause()).code;
            }
            failed.getCause().printStackTrace(both);
            return 1;
        }
    }
}
