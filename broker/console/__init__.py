"""The console: what the broker has and does, as JSON under /api/v1/ and as pages.

It is served by `odradek.http.listener` if `odradek.console` is set, and imported only then.
To read in this order:

calls         one request of the console: what its handler may use
endpoints     a handler with the types of its request and response; the errors of all
openapi       the description of all endpoints
"""
