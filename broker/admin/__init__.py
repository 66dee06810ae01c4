"""Changes topics and configurations: first the metadata, then the logs and services concerned.

Reading order: topic_admin, config_in_force, config_admin, log_levels.
"""
