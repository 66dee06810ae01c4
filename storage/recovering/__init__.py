"""Loads a log from its files after a clean or unclean stop. Kafka: LogLoader.

recovery             load_log: all steps in order
log_source           its input and its result
interrupted_swaps    undoes or completes swaps of segments that a crash interrupted
segment_loading      opens the segments
epoch_loading        loads the leader epochs
unflushed            checks the batches that were not flushed, and finds the log's end
producer_recovery    rebuilds the producer state from the snapshot and the batches since
txn_index_repair     finds and rebuilds damaged transaction indexes
task                 the same in another process: broker/maintenance/log_recovery.py recovers large
                     logs there
"""
