"""`odradek dump-log`: what lies in the files of a log, line for line as Kafka's own tool prints it.

`command` takes the options; `log_text`, `index_text` and `small_text` print one kind of file each,
`log_json` and its like the same as JSON lines. What records hold is told by `decoders`.
"""
