"""Logs on their way from one log directory to another.

    log_moves     begins and ends a move, and settles what a crash has left of one
    future_log    the copy that is being made
    copy_plan     which bytes are copied next

Nothing here knows a thread: broker/maintenance/log_mover.py lets the bytes be copied in one.
"""
