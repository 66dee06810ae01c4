"""`odradek why-not-deleted`: what retention will do with the logs of data directories, and when.

`command` prints, `answers` has the words; `stored_retention` reads the directories.
"""
