"""Start, run and stop of a broker process, and the failures that end it.

Reading order: run, running, preflight, startup, directory_failure, log_lines.
"""
