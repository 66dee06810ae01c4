import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/** Makes the response to a request that failed as a whole: "api-key version error-code hex" to "hex". */
public class ErrorResponses {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ", -1);
            System.out.println(answer(words));
        }
    }

    private static String answer(String[] words) {
        try {
            ApiKeys key = ApiKeys.forId(Integer.parseInt(words[0]));
            short version = Short.parseShort(words[1]);
            Exception error = Errors.forCode(Short.parseShort(words[2])).exception("because");
            ByteBufferAccessor data = new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(words[3])));
            AbstractResponse response =
                AbstractRequest.parseRequest(key, version, data).request.getErrorResponse(0, error);
            if (response == null) {
                return "none";
            }
            Message message = response.data();
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer made = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(made), cache, version);
            return HexFormat.of().formatHex(made.array());
        } catch (Exception error) {
            return "! " + error.toString().replace('\n', ' ');
        }
    }
}
