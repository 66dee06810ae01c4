"""Kafka's keys for threads, other brokers, quorums and metrics. odradek does not use them.

key_table.py explains the form of the table.
"""

TABLE = """\
num.network.threads INT 3 1..
    Kafka's network threads per listener.
num.io.threads INT 8 1..
    Kafka's request handler threads.
background.threads INT 10 1..
    Kafka's threads for background work.
num.replica.alter.log.dirs.threads INT null
    Threads that move replicas between data directories.
queued.max.requests INT 500 1..
    Requests that may wait for a handler thread.
request.timeout.ms INT 30000
    How long this broker waits for another broker's response.
socket.connection.setup.timeout.ms LONG 10000
    Initial timeout of a connection to another broker.
socket.connection.setup.timeout.max.ms LONG 30000
    Maximum to which that timeout grows with each failure.
early.start.listeners LIST null
    Listeners opened before the authorizer is ready.
config.providers LIST ""
    Classes that resolve ${provider:path:key} in values.
controlled.shutdown.enable BOOLEAN true
    Whether a broker hands over its leaderships before it stops.
create.topic.policy.class.name CLASS null
    Java class that may refuse the creation of a topic; refused at the start.
alter.config.policy.class.name CLASS null
    Java class that may refuse a change of configuration; refused at the start.
log.dir.failure.timeout.ms LONG 30000 1..
    How long the report of a failed directory to the controller may take.
unstable.api.versions.enable BOOLEAN false internal
    Whether unfinished API versions are served.
unstable.feature.versions.enable BOOLEAN false internal
    Whether unfinished feature levels may be chosen.
broker.heartbeat.interval.ms INT 2000
    Time between the broker's heartbeats to the controller.
initial.broker.registration.timeout.ms INT 60000
    How long a broker tries to register with the controllers.
server.max.startup.time.ms LONG 9223372036854775807 0.. internal
    Maximum time of a start.
sasl.mechanism.controller.protocol STRING GSSAPI
    SASL mechanism for connections to the controllers.
controller.performance.sample.period.ms LONG 60000 100.. internal
    How often the controller logs its own performance.
controller.performance.always.log.threshold.ms LONG 2000 0.. internal
    Controller events slower than this are logged.
metadata.max.idle.interval.ms INT 500 0..
    How often an idle controller writes a no-op record.
controller.quorum.voters LIST ""
    The controllers of a static quorum, as id@host:port.
controller.quorum.bootstrap.servers LIST ""
    Addresses of a dynamic controller quorum, as host:port.
controller.quorum.election.timeout.ms INT 1000 0..
    Time without a leader after which a controller calls an election.
controller.quorum.fetch.timeout.ms INT 2000 0..
    Time without a fetch after which a leader resigns or a follower becomes a candidate.
controller.quorum.election.backoff.max.ms INT 1000 0..
    Maximum delay between elections.
controller.quorum.append.linger.ms INT 25 0..
    How long the quorum's leader collects writes before an fsync.
controller.quorum.request.timeout.ms INT 2000 0..
    How long a quorum request may take.
controller.quorum.retry.backoff.ms INT 20 0..
    Delay before a quorum request is retried.
controller.quorum.auto.join.enable BOOLEAN false
    Whether a controller joins the quorum by itself.
controller.quorum.fetch.snapshot.max.bytes INT 1048576 1..
    Maximum bytes of one FetchSnapshot response.
controller.quorum.fetch.max.bytes INT 1048576 1..
    Maximum bytes of one fetch between controllers.
controller.socket.timeout.ms INT 30000
    Socket timeout between controller and brokers.
replica.lag.time.max.ms LONG 30000
    A follower that lags for this long is removed from the ISR.
replica.socket.timeout.ms INT 30000
    Socket timeout of a follower's requests.
replica.socket.receive.buffer.bytes INT 65536
    SO_RCVBUF of a follower's sockets.
replica.fetch.max.bytes INT 1048576 0..
    Bytes that a follower requests per partition.
replica.fetch.wait.max.ms INT 500
    Maximum wait of a follower's fetch.
replica.fetch.backoff.ms INT 1000 0..
    Delay of a follower after an error.
replica.fetch.min.bytes INT 1
    Minimum bytes that a follower's fetch waits for.
replica.fetch.response.max.bytes INT 10485760 0..
    Maximum bytes of one response to a follower.
num.replica.fetchers INT 1 1..
    Fetcher threads per source broker.
fetch.purgatory.purge.interval.requests INT 1000
    Number of requests between two purges of waiting fetches.
producer.purgatory.purge.interval.requests INT 1000
    Number of requests between two purges of waiting produces.
delete.records.purgatory.purge.interval.requests INT 1
    Number of requests between two purges of waiting record deletions.
auto.leader.rebalance.enable BOOLEAN true
    Whether leadership is moved back to preferred replicas.
leader.imbalance.check.interval.seconds LONG 300 1..
    How often leadership balance is checked.
unclean.leader.election.interval.ms LONG 300000 1.. internal
    How often partitions without a leader are checked.
replica.selector.class STRING null
    Java class that selects the replica to read from; of odradek.nodes, if it is the rack-aware one.
follower.fetch.last.tiered.offset.enable BOOLEAN false
    Whether an empty follower starts at the last tiered offset.
replication.quota.window.num INT 11 1..
    Number of samples for replication quotas.
alter.log.dirs.replication.quota.window.num INT 11 1..
    Number of samples for quotas on moves between directories.
replication.quota.window.size.seconds INT 1 1..
    Length of a sample of replication quotas.
alter.log.dirs.replication.quota.window.size.seconds INT 1 1..
    Length of a sample of quotas on moves between directories.
client.quota.callback.class CLASS null
    Java class that decides client quotas.
metrics.num.samples INT 2 1..
    Number of samples per metric.
metrics.sample.window.ms LONG 30000 1..
    Length of a metric's sample.
metric.reporters LIST org.apache.kafka.common.metrics.JmxReporter
    Java classes that receive metrics.
metrics.recording.level STRING INFO
    Which metrics are recorded: INFO, DEBUG or TRACE.
kafka.metrics.reporters LIST ""
    Java classes that receive the metrics of the older library.
kafka.metrics.polling.interval.secs INT 10 1..
    How often those classes poll.
"""
