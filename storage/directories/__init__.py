"""The log directories of a node: the parts that LogManager is made of.

data_directory        one log directory: its lock and its identity
log_search            finds the logs in it at start; found_log describes a log that is not open
log_table             all logs, the directory of each, and why some are not served
log_opening           opens a log
log_creation          creates the logs of new partitions
log_removal           removes logs of deleted partitions
offset_checkpoints    the files with one offset per log of a directory
disk_errors           transient disk errors, and those that take a directory offline
"""
