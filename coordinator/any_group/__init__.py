"""What groups of all types have in common.

Reading order: group; caller (the client of a request), group_settings (the configuration); offsets
(what a group has committed).
"""
