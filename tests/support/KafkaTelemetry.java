// Apache Kafka's ClientMetricsManager on a clock of the test's own: a JSON object in, one out.
//
//   {"do": "configure", "name": ..., "settings": {...}}      a subscription, or no settings: none
//   {"do": "get", "connection", "client", "id"}              GetTelemetrySubscriptions
//   {"do": "push", "connection", "client", "id", "subscription", "terminating", "compression",
//    "metrics"}                                              PushTelemetry; the metrics are base64
//   {"do": "close", "connection"}                            the connection ends
//   Requests come at "now" (ms). The id is the text of a Uuid.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.GetTelemetrySubscriptionsRequestData;
import org.apache.kafka.common.message.GetTelemetrySubscriptionsResponseData;
import org.apache.kafka.common.message.PushTelemetryRequestData;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.GetTelemetrySubscriptionsRequest;
import org.apache.kafka.common.requests.PushTelemetryRequest;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.ClientMetricsManager;
import org.apache.kafka.server.metrics.ClientTelemetryExporterPlugin;

public class KafkaTelemetry {
    private static final ObjectMapper JSON = new ObjectMapper();
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
        Metrics metrics = new Metrics(new MetricConfig(), new ArrayList<>(), CLOCK);
        ClientMetricsManager manager = new ClientMetricsManager(
            new ClientTelemetryExporterPlugin(), Integer.parseInt(args[0]), CLOCK, metrics);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(manager, JSON.readTree(line)));
        }
        System.exit(0);
    }

    private static ObjectNode answer(ClientMetricsManager manager, JsonNode asked) throws Exception {
        ObjectNode answer = JSON.createObjectNode();
        switch (asked.get("do").asText()) {
            case "configure":
                Properties settings = new Properties();
                asked.get("settings").properties().forEach(
                    each -> settings.put(each.getKey(), each.getValue().asText()));
                manager.updateSubscription(asked.get("name").asText(), settings);
                return answer;
            case "close":
                manager.connectionDisconnectListener().onDisconnect(asked.get("connection").asText());
                return answer;
            case "get":
                nowMs = asked.get("now").asLong();
                GetTelemetrySubscriptionsResponseData got = manager.processGetTelemetrySubscriptionRequest(
                    new GetTelemetrySubscriptionsRequest(
                        new GetTelemetrySubscriptionsRequestData().setClientInstanceId(id(asked)), (short) 0),
                    context(asked, ApiKeys.GET_TELEMETRY_SUBSCRIPTIONS)).data();
                answer.put("error", got.errorCode()).put("subscription", got.subscriptionId());
                answer.put("interval", got.pushIntervalMs());
                got.requestedMetrics().forEach(answer.putArray("metrics")::add);
                return answer;
            case "push":
                nowMs = asked.get("now").asLong();
                PushTelemetryRequestData data = new PushTelemetryRequestData()
                    .setClientInstanceId(id(asked))
                    .setSubscriptionId(asked.get("subscription").asInt())
                    .setTerminating(asked.get("terminating").asBoolean())
                    .setCompressionType((byte) asked.get("compression").asInt())
                    .setMetrics(ByteBuffer.wrap(Base64.getDecoder().decode(asked.get("metrics").asText())));
                return answer.put("error", manager.processPushTelemetryRequest(
                    new PushTelemetryRequest(data, (short) 0), context(asked, ApiKeys.PUSH_TELEMETRY)).data().errorCode());
            default:
                throw new IllegalArgumentException(asked.toString());
        }
    }

    private static Uuid id(JsonNode asked) {
        return Uuid.fromString(asked.get("id").asText());
    }

    private static RequestContext context(JsonNode asked, ApiKeys key) throws Exception {
        return new RequestContext(
            new RequestHeader(key, (short) 0, asked.get("client").asText(), 1),
            asked.get("connection").asText(),
            InetAddress.getByName("192.0.2.7"),
            Optional.of(40_000),
            KafkaPrincipal.ANONYMOUS,
            ListenerName.normalised("PLAINTEXT"),
            SecurityProtocol.PLAINTEXT,
            new ClientInformation("librdkafka", "2.8.0"),
            false);
    }
}
