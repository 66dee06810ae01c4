import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/**
 * What Kafka's StandardAuthorizer decides. A line is one of these; names are in hex of UTF-8:
 * "new SUPER_USERS ALLOWS_BY_DEFAULT": from here on there are no ACLs, and these settings.
 * "acl TYPE NAME PATTERN PRINCIPAL HOST OPERATION PERMISSION": one more ACL.
 * "ask USER HOST OPERATION TYPE NAME": the answer is a line, ALLOWED or DENIED.
 * "any USER HOST OPERATION TYPE": the same, of authorizeByResourceType.
 */
public class AclDecisions {
    private static StandardAuthorizer authorizer;

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        StringBuilder answers = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] w = line.split(" ");
            switch (w[0]) {
                case "new" -> restart(text(w[1]), w[2]);
                case "acl" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromCode(Byte.parseByte(w[1])), text(w[2]), PatternType.fromCode(Byte.parseByte(w[3])),
                    text(w[4]), text(w[5]), AclOperation.fromCode(Byte.parseByte(w[6])), AclPermissionType.fromCode(Byte.parseByte(w[7]))));
                case "ask" -> answers.append(authorizer.authorize(new Client(text(w[1]), text(w[2])), List.of(new Action(
                    AclOperation.fromCode(Byte.parseByte(w[3])),
                    new ResourcePattern(ResourceType.fromCode(Byte.parseByte(w[4])), text(w[5]), PatternType.LITERAL),
                    1, false, false))).get(0)).append('\n');
                default -> answers.append(authorizer.authorizeByResourceType(new Client(text(w[1]), text(w[2])),
                    AclOperation.fromCode(Byte.parseByte(w[3])), ResourceType.fromCode(Byte.parseByte(w[4])))).append('\n');
            }
        }
        System.out.print(answers);
        System.out.flush();
    }

    private static void restart(String superUsers, String allowsByDefault) {
        authorizer = new StandardAuthorizer();
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.configure(Map.of("super.users", superUsers, "allow.everyone.if.no.acl.found", allowsByDefault));
        authorizer.completeInitialLoad();
    }

    private static String text(String hex) {
        return new String(HexFormat.of().parseHex(hex.substring(1)), StandardCharsets.UTF_8);
    }

    private record Client(String user, String host) implements AuthorizableRequestContext {
        public String listenerName() { return "PLAINTEXT"; }
        public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        public KafkaPrincipal principal() { return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user); }
        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException e) {
                throw new IllegalArgumentException(e);
            }
        }
        public int requestType() { return 0; }
        public int requestVersion() { return 9; }
        public String clientId() { return "client"; }
        public int correlationId() { return 1; }
    }
}
