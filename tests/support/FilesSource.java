import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.file.FileStreamSourceConnector;

/** FileStreamSource with many tasks: task N copies the lines of `file`.N to the topic `topic`-N. */
public class FilesSource extends FileStreamSourceConnector {
    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> settings) {
        this.settings = settings;
        super.start(settings);
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        List<Map<String, String>> tasks = new ArrayList<>();
        for (int task = 0; task < most; task++) {
            Map<String, String> own = new HashMap<>(settings);
            own.put(FILE_CONFIG, settings.get(FILE_CONFIG) + "." + task);
            own.put(TOPIC_CONFIG, settings.get(TOPIC_CONFIG) + "-" + task);
            tasks.add(own);
        }
        return tasks;
    }
}
