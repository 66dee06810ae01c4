"""The steps of a start, each as a function of what it needs. The process itself is in lifecycle/.

Reading order: preflight, startup, coordinators, coordinator_logs.
"""
