"""Disk work off the event loop: threads, group commit of fsyncs, watching for free space."""
