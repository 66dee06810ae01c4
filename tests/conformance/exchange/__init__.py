"""One data directory, served in turn by Apache Kafka and by odradek, with writes at each turn.

`shared` starts the one or the other on the directory; `seen` asks a broker for everything that
clients can ask for, as plain values to be compared; `history` writes at every turn; `first_turn`
has what is written once, and asks for it. `producers` have transactions that outlive a broker;
`undecided` takes the ends of some out of the directory.
"""
