"""Disk work off the event loop: disk threads, cold reads, group commit of fsyncs, free space.

progress says how far workers are whose fsyncs a change waits for; throttle limits work in the
background.
"""
