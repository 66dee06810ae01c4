import java.util.Base64;
import java.util.Scanner;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/** A line is a name (DER in base64), a blank, and mapping rules; the answer is "name -> user" or "name -> !" . */
public class SslPrincipals {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in, "UTF-8");
        java.io.PrintStream out = new java.io.PrintStream(System.out, true, java.nio.charset.StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] parts = lines.nextLine().split(" ", 2);
            String name = new X500Principal(Base64.getDecoder().decode(parts[0])).getName();
            String user;
            try {
                user = SslPrincipalMapper.fromRules(parts[1]).getName(name);
            } catch (Exception error) {
                user = "!";
            }
            out.println((name + " -> " + user).replace("\n", "\\n").replace("\r", "\\r"));
        }
    }
}
