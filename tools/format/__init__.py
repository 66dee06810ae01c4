"""`odradek format`: formats empty data directories, with the first SCRAM users.

`options` declares the command line, `command` runs it, `scram_credential` parses a credential.
"""
