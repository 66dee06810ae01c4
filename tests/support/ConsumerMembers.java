// Apache Kafka's consumers of the new protocol (group.protocol=consumer), several in one process.
// A line in for each command, fields divided by tabs; a line out when it is done.
//
//   join NAME GROUP KEY=VALUE...   a consumer that polls from now on; `topics` or `regex` say what,
//                                  other keys are the consumer's own; done with its first assignment
//   assigned NAME COUNT            done when the consumer has so many partitions
//   commit NAME OFFSET             commits that offset of each of its partitions
//   close NAME stay|leave          ends it; one that stays keeps its place, if it is static
//
// At the end of the input the process dies, and says goodbye to nobody.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

public class ConsumerMembers {
    private static final long LIMIT_SECONDS = 60;
    private final Map<String, Member> members = new HashMap<>();
    private final String bootstrap;

    private ConsumerMembers(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    private interface Work {
        boolean done(KafkaConsumer<String, String> consumer);
    }

    private record Task(Work work, CompletableFuture<Void> done) {
    }

    // A consumer belongs to one thread: that polls, and between polls does what it is asked to.
    private static final class Member extends Thread {
        private final KafkaConsumer<String, String> consumer;
        private final BlockingQueue<Task> tasks = new LinkedBlockingQueue<>();
        private volatile boolean isOpen = true;

        Member(KafkaConsumer<String, String> consumer) {
            this.consumer = consumer;
            setDaemon(true);
        }

        @Override
        public void run() {
            List<Task> open = new ArrayList<>();
            while (isOpen) {
                consumer.poll(Duration.ofMillis(50));
                tasks.drainTo(open);
                open.removeIf(this::isDone);
            }
        }

        private boolean isDone(Task task) {
            try {
                boolean done = task.work.done(consumer);
                if (done) task.done.complete(null);
                return done;
            } catch (RuntimeException error) {
                task.done.completeExceptionally(error);
                return true;
            }
        }

        void until(Work work) throws Exception {
            Task task = new Task(work, new CompletableFuture<>());
            tasks.add(task);
            task.done.get(LIMIT_SECONDS, TimeUnit.SECONDS);
        }
    }

    public static void main(String[] args) throws Exception {
        ConsumerMembers all = new ConsumerMembers(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                all.obey(line.split("\t"));
                System.out.println("done");
            } catch (Exception error) {
                System.out.println("failed: " + error);
            }
            System.out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private void obey(String[] words) throws Exception {
        if (words[0].equals("join")) {
            join(words);
            return;
        }
        Member member = members.get(words[1]);
        switch (words[0]) {
            case "assigned" -> {
                int count = Integer.parseInt(words[2]);
                member.until(consumer -> consumer.assignment().size() == count);
            }
            case "commit" -> {
                long offset = Long.parseLong(words[2]);
                member.until(consumer -> commit(consumer, offset));
            }
            case "close" -> {
                CloseOptions.GroupMembershipOperation operation = words[2].equals("stay")
                    ? CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP
                    : CloseOptions.GroupMembershipOperation.LEAVE_GROUP;
                member.until(consumer -> {
                    consumer.close(CloseOptions.groupMembershipOperation(operation));
                    member.isOpen = false;
                    return true;
                });
            }
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private void join(String[] words) throws Exception {
        Map<String, String> topics = new HashMap<>();
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.protocol", "consumer");
        properties.put("group.id", words[2]);
        properties.put("client.id", words[1]);
        properties.put("enable.auto.commit", "false");
        for (int i = 3; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            if (pair[0].equals("topics") || pair[0].equals("regex")) topics.put(pair[0], pair[1]);
            else properties.put(pair[0], pair[1]);
        }
        KafkaConsumer<String, String> consumer =
            new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
        if (topics.containsKey("regex")) consumer.subscribe(new SubscriptionPattern(topics.get("regex")));
        else consumer.subscribe(List.of(topics.get("topics").split(",")));
        Member member = new Member(consumer);
        members.put(words[1], member);
        member.start();
        member.until(one -> !one.assignment().isEmpty());
    }

    private static boolean commit(KafkaConsumer<String, String> consumer, long offset) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        consumer.assignment().forEach(partition -> offsets.put(partition, new OffsetAndMetadata(offset)));
        consumer.commitSync(offsets);
        return true;
    }
}
