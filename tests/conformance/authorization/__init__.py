"""The same requests to Apache Kafka and odradek, with every access control entry that can matter.

The tested client and the administrator are both User:ANONYMOUS. Their addresses tell them apart:
all of 127.0.0.0/8 is this machine, so the client comes from 127.0.0.1 and the administrator from
127.0.0.2, and each entry is for one of the two.
"""
