"""`odradek why-not-deleted`: explains for each segment why retention keeps or deletes it, and when.

`options` declares the command line, `command` runs it, `stored_retention` reads the directories,
`report` formats the result.
"""
