"""`odradek pipeline`: the jobs, which run in processes of this machine or on Spark.

Each job has a file with its options and the function `command`; it is imported when the command is
used. The work is done in `odradek.pipeline.jobs`. A file `*_report.py` prints a job's result.
Shared by all jobs: `options`, `running` (where a job runs, errors, exit codes).
"""
