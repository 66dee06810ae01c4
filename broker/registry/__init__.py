"""The schema registry: Confluent's REST API over the topic `_schemas`.

It is served by `odradek.registry.listener`, and imported only if that is set. What the registry
decides is in coordinator/registry/; here are the topic, the requests and who may make them.

To read in this order:

rest_server    the HTTP server, and what it is made of
resources      the paths, and what each does
requests       the query, the body and the content type of a request
replies        the JSON of replies and errors
service        one change at a time: decide, append, replay; long work in a process
remote_work    long work on schemas, in that process
schema_log     the topic: found or created, read, appended to
access         logins and permissions
libraries      what must be installed
first_imports  what schemas need, imported before the first request
"""
