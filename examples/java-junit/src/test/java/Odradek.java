import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Pattern;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Store.CloseableResource;

/** Starts one broker for all tests. It ends with the JVM, even when that is killed. */
public final class Odradek implements BeforeAllCallback {
    private static final Pattern ADDRESS = Pattern.compile("\"bootstrap_servers\": *\"([^\"]+)\"");

    /** Where clients connect. */
    public static String bootstrapServers() {
        return bootstrapServers;
    }

    private static String bootstrapServers;

    @Override
    public void beforeAll(ExtensionContext context) {
        context.getRoot().getStore(ExtensionContext.Namespace.GLOBAL)
            .getOrComputeIfAbsent(Odradek.class, key -> start());
    }

    private static CloseableResource start() {
        try {
            Path directory = Files.createTempDirectory(Path.of("target"), "odradek");
            Process process = new ProcessBuilder(
                    "odradek", "serve", "--port", "0", "--print-address",
                    "--override", "log.dirs=" + directory,
                    "--override", "group.initial.rebalance.delay.ms=0")
                .redirectError(ProcessBuilder.Redirect.to(directory.resolve("log").toFile()))
                .start();
            var address = ADDRESS.matcher(String.valueOf(process.inputReader().readLine()));
            if (!address.find()) {
                throw new IllegalStateException(Files.readString(directory.resolve("log")));
            }
            bootstrapServers = address.group(1);
            return process::destroy;
        } catch (IOException error) {
            throw new IllegalStateException("odradek cannot be started", error);
        }
    }
}
