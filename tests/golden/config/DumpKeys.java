import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints keys.tsv: kind, name, type, default, valid values, when it may change, visibility. */
public class DumpKeys {
    static String cell(Object value) {
        return value == null ? "\\N" : value.toString();
    }

    static void dump(String kind, Map<String, ConfigDef.ConfigKey> keys) {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        for (ConfigDef.ConfigKey key : keys.values()) {
            String fallback = ConfigDef.NO_DEFAULT_VALUE.equals(key.defaultValue)
                ? "<required>" : cell(ConfigDef.convertToString(key.defaultValue, key.type));
            System.out.println(String.join("\t", kind, key.name, key.type.name(), fallback,
                cell(key.validator), kind.equals("broker") ? cell(modes.get(key.name)) : "\\N",
                key.internalConfig ? "internal" : "public"));
        }
    }

    public static void main(String[] arguments) {
        System.out.println("# kind\tname\ttype\tdefault\tvalid values\twhen it may change\tvisibility   (\\N: null)");
        dump("broker", AbstractKafkaConfig.CONFIG_DEF.configKeys());
        dump("topic", LogConfig.configKeys());
    }
}
