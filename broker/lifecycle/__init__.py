"""Start, run and stop of a broker process, and the failures that end it.

Reading order: run, running, exposure, parent_process, service_manager, directory_failure.
"""
