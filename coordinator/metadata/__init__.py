"""The cluster's metadata: what a KRaft controller decides, and the log in which it stands."""
