"""What clients see of a cluster of three nodes while nodes fail: scripts of raw requests.

Reading order: talk, asked, asked_coordinators; the scripts: described, placed, records, racks,
coordinators, transactions, shares, failures, reassigned, waiting; scripts.py lists them.
`tests/conformance/test_cluster_answers.py` holds them, and `tests/support/clusters.py` says what a
script may do to a cluster.
"""
