"""Start, run and stop of a broker process.

Reading order: run, running, topics_at_start, exposure, parent_process, service_manager.
"""
