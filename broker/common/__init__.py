"""What every room of the broker may use. Nothing here imports another room.

background_tasks    tasks that run to their end
clock               the wall clock, and the clock of deadlines
event_loop          uvloop's loop, or asyncio's
effective_config    the configuration in force, and who follows it
nodes               the nodes that clients see
durations, traffic  histograms, and counts of what clients send and get
log_lines           the formats of log lines
"""
