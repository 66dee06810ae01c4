"""Moving logs between log directories.

    log_moves     starts and completes moves, and handles interrupted ones after a restart
    future_log    the copy of one log
    copy_plan     the next bytes to copy

Nothing here uses threads: broker/maintenance/log_mover.py runs the copying in the disk threads.
"""
