"""`odradek verify`: checks whole data directories, and predicts what a broker's start would do.

It only reads. `options` declares the command line, `command` runs it. `directories` checks log
directories, `log_check` one log, `segment_check` one segment. `index_check`, `epoch_check`,
`record_check` and `transaction_check` are shown each batch and compare it with one kind of file.
`findings` is what they report.
"""
