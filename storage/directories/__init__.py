"""The log directories of a node: the parts that LogManager is made of.

log_search            finds the logs in a directory at start; found_log is one that is not open
log_table             all logs, the directory of each, and why some are not served
log_opening           opens a log
log_creation          creates the logs of new partitions
log_removal           removes logs of deleted partitions
offset_checkpoints    the files with one offset per log of a directory
"""
