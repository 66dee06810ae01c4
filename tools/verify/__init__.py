"""`odradek verify`: checks whole data directories, and predicts what a broker's start would do.

It only reads. `options` declares the command line, `command` runs it, also for `odradek pipeline
verify`. `job` plans the work and gives it to a runner: processes or Spark. `directories` checks the
files of log directories that belong to no log. `logs` is what a process runs: `partition_check`
checks the directory of one log (`second_look` repeats that if something seems to be wrong),
`log_check` the log, `segment_check` one segment. `index_check`, `epoch_check`, `producer_check` and
`record_check` are shown each batch and check one kind of thing; `quick_records` reads the records
of many batches at once. `unsynced_files` reports small files that a power cut may have damaged.
`gap_check` tells the cleaner's gaps from others. `log_transactions` follows the transactions of a
log, `transaction_check` compares them with an index. `decision_check` checks `__transaction_state`,
and `open_transaction_check` compares it with all logs. `findings` is what they report, `report`
prints it.
"""
