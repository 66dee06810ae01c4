"""One data directory, served in turn by Apache Kafka and by odradek, with writes at each turn.

`shared` starts the one or the other on the directory; `seen` asks a broker for everything that
clients can ask for, as plain values to be compared; `kafka_only` asks for what only Kafka serves;
`history` writes: what both can do at every turn, and at the first what only Kafka can. `producers`
have transactions that outlive a broker; `undecided` takes the ends of some out of the directory.
"""
