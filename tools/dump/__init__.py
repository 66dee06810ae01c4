"""`odradek dump-log`: prints the files of a log, line for line as Kafka's kafka-dump-log does.

`options` declares the command line, `command` runs it. `log_text`, `index_text` and
`producer_state_text` print one kind of file each; `lines_json` prints all kinds as JSON lines.
`decoders` decodes keys and values; records of internal topics and control records are decoded in
coordinator/inspect.
"""
