"""Proof of docs/guarantees.md: power cuts, calls that fail, simulated lives, histories.

life        a broker works; `JournalledFiles` records what it does to its disk -> journal
images      a journal, cut anywhere -> directories that a power cut could leave there
failing     a disk on which the n-th call fails; life_over_errors: what may follow then
share_requests: what members of share groups send
test_power_cuts_beside_kafka: what Apache Kafka serves of the same directories
claims      a broker starts on such a directory -> what is promised holds, or what does not

simulated_loop      time and disk threads as a seed says
world               a broker on that loop, its connections, and what its clients know
simulated_clients   producers, transactions, readers, members, an administrator
expectations        what they know, compared with what the broker has
simulation          three kills or power cuts in a run
simulated_groups    members of share groups and of classic groups
planted             faults of the broker that the proofs must find

clients     programs of real clients that write down what they do
crowd       their processes; nemesis: what befalls them and the broker
history     what they have written; anomalies: what is wrong with it
"""
