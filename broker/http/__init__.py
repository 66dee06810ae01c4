"""HTTP/1.1 on the broker's event loop: metrics, the console, the schema registry.

h11 knows the protocol. To read in this order:

messages      a request and a response
json_bodies   the JSON of a request's body
routes        paths and who serves them
connection    one client: its requests, limits and times
server        the listening socket
"""
