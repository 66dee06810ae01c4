"""What clients see of a cluster of three nodes while nodes fail.

Reading order: talk, asked, then the scripts: described, placed, records, racks, coordinators,
transactions, failures, reassigned. `test_cluster_answers.py` compares; `tests/support/clusters.py`
is what a script may do to a cluster.
"""
