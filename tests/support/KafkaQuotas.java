// Apache Kafka's client quotas on a clock of the test's own: a line of words in, an answer out.
//
//   quota TYPE USER CLIENT VALUE    sets a quota; - for the default entity, . for none; VALUE x removes it
//   limit TYPE USER CLIENT          "LIMIT USER CLIENT": the limit, and who shares it (. for all)
//   charge TYPE USER CLIENT AMOUNT MS
//                                   the throttle time in ms of an amount that was used at that time;
//                                   TYPE is PRODUCE, FETCH, REQUEST, or CONTROLLER_MUTATION, which is
//                                   strict; PERMISSIVE is the same quota for older clients
//   A word that starts with = is a name: "=" alone is the empty one.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.internals.Sanitizer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Timer;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ClientRequestQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;

public class KafkaQuotas {
    private static long nowMs = 0;

    private static final Time CLOCK = new Time() {
        public long milliseconds() {
            return nowMs;
        }

        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        public void sleep(long ms) {
            throw new IllegalStateException();
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new IllegalStateException();
        }
    };

    public static void main(String[] args) throws Exception {
        int samples = Integer.parseInt(args[0]);
        int seconds = Integer.parseInt(args[1]);
        nowMs = Long.parseLong(args[2]);
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(samples, seconds);
        Map<QuotaType, ClientQuotaManager> managers = new EnumMap<>(QuotaType.class);
        Metrics metrics = new Metrics(new MetricConfig(), new java.util.ArrayList<>(), CLOCK);
        for (QuotaType type : new QuotaType[] {QuotaType.PRODUCE, QuotaType.FETCH}) {
            managers.put(type, new ClientQuotaManager(config, metrics, type, CLOCK, ""));
        }
        managers.put(QuotaType.REQUEST, new ClientRequestQuotaManager(config, metrics, CLOCK, "", Optional.empty()));
        managers.put(
            QuotaType.CONTROLLER_MUTATION,
            new ControllerMutationQuotaManager(config, metrics, CLOCK, "", Optional.empty()));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(managers, line.split(" ")));
        }
        System.exit(0);
    }

    private static String answer(Map<QuotaType, ClientQuotaManager> managers, String[] words) {
        boolean isPermissive = words[1].equals("PERMISSIVE");
        ClientQuotaManager manager =
            managers.get(isPermissive ? QuotaType.CONTROLLER_MUTATION : QuotaType.valueOf(words[1]));
        switch (words[0]) {
            case "quota":
                manager.updateQuota(
                    entity(words[2], ClientQuotaManager.DEFAULT_USER_ENTITY, true),
                    entity(words[3], ClientQuotaManager.DEFAULT_USER_CLIENT_ID, false),
                    words[4].equals("x") ? Optional.empty() : Optional.of(Quota.upperBound(Double.parseDouble(words[4]))));
                return "ok";
            case "limit":
                Map<String, String> tags =
                    manager.getOrCreateQuotaSensors(session(words[2]), name(words[3])).metricTags();
                double limit = manager.quota(name(words[2]), name(words[3])).bound();
                return limit + " =" + Sanitizer.desanitize(tags.get("user")) + " =" + tags.get("client-id");
            case "charge":
                nowMs = Long.parseLong(words[5]);
                double amount = Double.parseDouble(words[4]);
                if (manager instanceof ControllerMutationQuotaManager mutations) {
                    ControllerMutationQuota quota = isPermissive
                        ? mutations.newPermissiveQuotaFor(session(words[2]), name(words[3]))
                        : mutations.newStrictQuotaFor(session(words[2]), name(words[3]));
                    try {
                        quota.record(amount);
                    } catch (ThrottlingQuotaExceededException e) {
                        return "refused " + e.throttleTimeMs();
                    }
                    return String.valueOf(quota.throttleTime());
                }
                return String.valueOf(
                    manager.maybeRecordAndGetThrottleTimeMs(session(words[2]), name(words[3]), amount, nowMs));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static String name(String word) {
        return word.substring(1);
    }

    private static Session session(String user) {
        return new Session(new KafkaPrincipal(KafkaPrincipal.USER_TYPE, name(user)), InetAddress.getLoopbackAddress());
    }

    private static Optional<ClientQuotaEntity.ConfigEntity> entity(
        String word, ClientQuotaEntity.ConfigEntity byDefault, boolean isUser) {
        if (word.equals(".")) {
            return Optional.empty();
        }
        if (word.equals("-")) {
            return Optional.of(byDefault);
        }
        String name = name(word);
        return Optional.of(
            isUser ? new ClientQuotaManager.UserEntity(Sanitizer.sanitize(name)) : new ClientQuotaManager.ClientIdEntity(name));
    }
}
