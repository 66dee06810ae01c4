"""Changes of topics and configurations: metadata first, then the logs and services they concern.

Reading order: topic_admin, config_in_force, config_admin, log_levels.
"""
