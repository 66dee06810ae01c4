import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;

/**
 * What Kafka makes of subscriptions by pattern. The first line is topic names, blanks between them;
 * each line after it is a pattern, in hex of UTF-8. The answer is a line for each: "ok" and the names
 * that match whole, or "bad" and RE2/J's description.
 */
public class TopicPatterns {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<String> names = List.of(in.readLine().split(" "));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(new String(HexFormat.of().parseHex(line), StandardCharsets.UTF_8), names));
        }
    }

    private static String answer(String text, List<String> names) {
        try {
            Pattern pattern = Pattern.compile(text);
            return names.stream().filter(name -> pattern.matcher(name).matches()).collect(Collectors.joining(" ", "ok ", ""));
        } catch (PatternSyntaxException e) {
            return "bad " + e.getDescription();
        }
    }
}
