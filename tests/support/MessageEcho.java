import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/** Reads messages with Kafka's own classes and writes them again: "name version hex" to "hex left". */
public class MessageEcho {
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.coordinator.share.generated.",
    };

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(echo(words[0], Short.parseShort(words[1]), HexFormat.of().parseHex(words[2])));
        }
    }

    private static String echo(String name, short version, byte[] data) {
        try {
            ByteBuffer given = ByteBuffer.wrap(data);
            Message message = (Message) find(name).getDeclaredConstructor().newInstance();
            message.read(new ByteBufferAccessor(given), version);
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer made = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(made), cache, version);
            return HexFormat.of().formatHex(made.array()) + " " + given.remaining();
        } catch (Exception error) {
            return error.toString().replace('\n', ' ');
        }
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        for (String path : PACKAGES) {
            for (String ending : new String[] {"", "Data"}) {
                try {
                    return Class.forName(path + name + ending);
                } catch (ClassNotFoundException absent) {
                    continue;
                }
            }
        }
        throw new ClassNotFoundException(name);
    }
}
