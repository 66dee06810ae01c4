"""Disk work off the event loop: disk threads, cold reads, group commit of fsyncs, free space.

throttle limits work in the background.
"""
