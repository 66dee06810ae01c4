"""Processes that walk records for the broker, so that the event loop's latency stays low.

messages, process_pipe       what both sides share; process_pipe is also the process's end
worker_process               the broker's end
cleaner_process, recovery_process, walk_process     run with `python -m`, one task at a time
record_walks                 the service that gives large batches to walk_process
"""
