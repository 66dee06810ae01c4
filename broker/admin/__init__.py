"""Changes topics and configurations: first the metadata, then the logs and services concerned.

Reading order: operations, topic_admin, config_admin, applied_config, subscriptions, log_levels,
admin.
"""
