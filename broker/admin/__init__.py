"""Changes topics and configurations: first the metadata, then the logs and services concerned.

Reading order: operations, topic_admin, effective_config, config_admin, log_levels.
"""
