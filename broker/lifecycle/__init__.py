"""Start, run and stop of a broker process, and the failures that end it.

Reading order: run, running, preflight, startup, coordinators, coordinator_logs, background_tasks,
directory_failure, log_lines.
"""
