"""What groups of all types have in common.

Reading order: group; caller (the client of a request), group_settings (the configuration);
group_offsets (what a group has committed), offsets (of all groups), joined_offsets (of a request).
"""
