"""From the files that the last life left to a log that can be served. Kafka: LogLoader.

recovery             load_log: the whole of it, in order
log_source           what it is told, and what it gives
interrupted_swaps    swaps of segments that a crash has interrupted
found_segments       the segments that lie there
found_epochs         the leader epochs
unflushed            batches that were not flushed are read again, and where the log ends
producer_recovery    the producers, from their snapshot and the batches since
txn_index_repair     transaction indexes that cannot be true
progress             how often to tell of it
task                 the same in another process: broker/maintenance/log_recovery.py has large logs
                     recovered there
"""
