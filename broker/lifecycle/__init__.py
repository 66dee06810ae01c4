"""Start, run and stop of a broker process.

Reading order: run, running, exposure, parent_process, service_manager.
"""
