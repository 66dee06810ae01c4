"""`odradek verify`: checks whole data directories, and predicts what a broker's start would do.

It only reads. `options` declares the command line, `command` runs it. `directories` checks log
directories, `partition_check` the directory of one log (`second_look` repeats that while a broker
writes), `log_check` the log, `segment_check` one segment. `index_check`, `epoch_check` and
`record_check` are shown each batch and compare it with one kind of file. `log_transactions` follows
the transactions of a log, `transaction_check` compares them with an index. `decision_check` checks
`__transaction_state`, and `open_transaction_check` compares it with all logs. `findings` is what
they report.
"""
