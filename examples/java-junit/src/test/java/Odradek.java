import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;

/** Starts one broker for all tests. It ends with the JVM, even when that is killed. */
public final class Odradek implements BeforeAllCallback {
    /** Where clients connect. */
    public static String bootstrapServers() {
        return bootstrapServers;
    }

    /** Lets the broker do something, as to fail. The call and its result are JSON. */
    public static String call(String json) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(controlUrl))
            .header("Authorization", "Bearer " + controlToken)
            .POST(HttpRequest.BodyPublishers.ofString(json))
            .build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            throw new IllegalStateException(response.body());
        }
        return response.body();
    }

    private static String bootstrapServers;
    private static String controlUrl;
    private static String controlToken;

    @Override
    public void beforeAll(ExtensionContext context) {
        context.getRoot().getStore(ExtensionContext.Namespace.GLOBAL)
            .getOrComputeIfAbsent(Odradek.class, key -> start());
    }

    private static CloseableResource start() {
        try {
            Path directory = Files.createTempDirectory(Path.of("target"), "odradek");
            Process process = new ProcessBuilder(
                    "odradek", "serve", "--port", "0", "--print-address", "--control",
                    "--override", "log.dirs=" + directory,
                    "--override", "group.initial.rebalance.delay.ms=0")
                .redirectError(ProcessBuilder.Redirect.to(directory.resolve("log").toFile()))
                .start();
            String address = process.inputReader().readLine();
            if (address == null) {
                throw new IllegalStateException(Files.readString(directory.resolve("log")));
            }
            bootstrapServers = member(address, "bootstrap_servers");
            controlUrl = member(address, "control_url");
            controlToken = member(address, "control_token");
            return process::destroy;
        } catch (IOException error) {
            throw new IllegalStateException("odradek cannot be started", error);
        }
    }

    private static String member(String json, String name) {
        var text = Pattern.compile("\"" + name + "\": *\"([^\"]+)\"").matcher(json);
        if (!text.find()) {
            throw new IllegalStateException(json);
        }
        return text.group(1);
    }
}
