"""`odradek format`: formats empty data directories, with the first SCRAM users.

`options` declares the command line, `command` runs it, `scram_credential` parses a credential,
`feature_levels` what is chosen of the levels of features.
"""
