"""The cluster's metadata: a state machine, and the functions that decide on changes of it.

The state is built from the records of `__cluster_metadata-0`, which has Kafka's KRaft format.

Reading order:

the state             cluster_metadata; its parts topics, configs, features, broker_registration,
                      client_quotas, acls, scram_credentials, delegation_tokens,
                      kept_records (kept for Kafka, not served)
the decisions         controller (one method for each), topic_creation with placement,
                      topic_deletion, config_changes, quota_changes, elections, log_directories,
                      reassignments, feature_updates, min_insync_replicas, producer_ids,
                      voter_changes, acl_changes, scram_changes, token_changes with token_hmacs;
                      record_limit, what one operation may write
the broker's rules    topic_settings, config_settings: what the configuration allows
the log at start      metadata_format (an empty directory), metadata_reading, servability, quorum,
                      quorum_state, kraft_log
its snapshots         metadata_image (the content), metadata_snapshot (the file), snapshot_batches,
                      snapshot_keeping
"""
