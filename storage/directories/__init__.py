"""The log directories of a node and what lies in them: the parts that LogManager is made of.

data_directory        one of them: locked, and marked as this node's
log_search            what lies in it at start; found_log is a log there that is not open
log_table             which logs there are, where each lies, and why some are not served
log_opening           from a directory to an open log
log_creation          how logs of new partitions are made
log_retirement        how logs leave
offset_checkpoints    the files that say an offset of every log in a directory
upkeep                what is done to all logs from time to time
disk_errors           which errors pass, and which take a directory offline
"""
