"""`odradek pipeline`: jobs on Spark, by command.

Each job is one file, imported when it is asked for: `command` is what typer shows, the work is in
`odradek.pipeline.jobs`. Shared by all: `options`, `running` (Spark, errors, exit codes),
`progress`, `tables`.
"""
