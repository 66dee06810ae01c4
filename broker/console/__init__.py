"""The console: what the broker has and does, as JSON under /api/v1/ and as pages.

It is served by `odradek.http.listener` if `odradek.console` is set, and imported only then.
To read in this order:

console       all routes; who may use them
endpoints     a handler with the types of its request and response; the errors of all
recent_lines  the last warnings and errors
calls         one request: what its handler may use
watching      a view as server-sent events
views/        the handlers, a module for each view
messages/     reads, decodes and writes records for views/messages
openapi       the description of all endpoints
page_files    the files in pages/, which browsers get
"""
