"""Disk work off the event loop: disk threads, cold reads, group commit of fsyncs, free space.

batch_reads reads records for the broker itself; throttle limits work in the background.
"""
