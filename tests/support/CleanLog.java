import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Cleans logs with Kafka's own cleaner, one round for each line that comes in: dedupe buffer bytes, the time of
 * cleaning, the log's directory, its first dirty offset, and its settings as "name=value,name=value".
 * Answers with a line: end offset, first uncleanable offset, messages read, written and without a key, clean and
 * cleanable bytes, bytes read and written.
 */
public class CleanLog {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            clean(
                new File(words[2]), Long.parseLong(words[3]), words[4], Integer.parseInt(words[0]),
                Long.parseLong(words[1]));
        }
    }

    private static void clean(File directory, long firstDirty, String settings, int bufferBytes, long nowMs)
            throws Exception {
        Properties properties = new Properties();
        for (String setting : settings.split(",")) {
            String[] pair = setting.split("=");
            properties.put(pair[0], pair[1]);
        }
        Time time = stoppedAt(nowMs);
        UnifiedLog log = UnifiedLog.create(
            directory, new LogConfig(properties), 0L, Long.MAX_VALUE, new NoScheduler(), new BrokerTopicStats(),
            time, 60_000, new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(1), true, Optional.empty());
        log.updateHighWatermark(log.logEndOffset());
        long uncleanable = Math.min(log.lastStableOffset(), log.activeSegment().baseOffset());
        LogToClean toClean = new LogToClean(log, firstDirty, uncleanable, false);
        Cleaner cleaner = new Cleaner(
            0, new SkimpyOffsetMap(bufferBytes), 1 << 16, 1 << 30, 0.9,
            new Throttler(Double.MAX_VALUE, 300, "throttler", "entries", time), time, partition -> { });
        Map.Entry<Long, CleanerStats> done = cleaner.doClean(toClean, nowMs);
        CleanerStats stats = done.getValue();
        log.prepareActiveSegmentForClose();
        log.close();
        System.out.println(
            done.getKey() + " " + toClean.firstUncleanableOffset() + " " + stats.messagesRead() + " "
            + stats.messagesWritten() + " " + stats.invalidMessagesRead() + " " + toClean.cleanBytes() + " "
            + toClean.cleanableBytes() + " " + stats.bytesRead() + " " + stats.bytesWritten());
    }

    /** The system's time, but that the clock on the wall stands still. */
    private static Time stoppedAt(long nowMs) {
        return (Time) Proxy.newProxyInstance(
            CleanLog.class.getClassLoader(), new Class<?>[] {Time.class},
            (proxy, method, arguments) ->
                method.getName().equals("milliseconds") ? nowMs : method.invoke(Time.SYSTEM, arguments));
    }

    private static class NoScheduler implements Scheduler {
        @Override
        public void startup() { }

        @Override
        public void shutdown() { }

        @Override
        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            return (ScheduledFuture<?>) Proxy.newProxyInstance(
                CleanLog.class.getClassLoader(), new Class<?>[] {ScheduledFuture.class},
                (proxy, method, arguments) -> method.getReturnType() == boolean.class ? true : null);
        }

        @Override
        public void resizeThreadPool(int newSize) { }
    }
}
