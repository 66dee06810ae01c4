"""A cluster of N nodes that clients see, in one process, for tests of clients (odradek.nodes).

Each node has an id, a rack and listeners of its own. One log is behind all of them: replication,
elections and failures are played, and a directory made so is the directory of one node. It tests
what clients do when brokers fail; it is not a copy of the data.

    partition_roles     which nodes have a partition, and which of them leads: pure decisions
    cluster             the nodes and partitions, and what their changes do in the broker
    cluster_nodes       the nodes, as the handlers of one of them see them
    node_view           the broker, as the handlers of one node see it
    coordinator_checks  requests for groups and transactions that another node coordinates
    own_views, leader_answers, elections, replication
                        what a node answers otherwise than a broker that is alone
    gate                requests to a node that is paused, slow or cut off
    node_handlers       the handlers of a node
    cluster_node        a node: its ports, its server; start, stop, kill, pause
    played_cluster      all nodes of a running broker
"""
