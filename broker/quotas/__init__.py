"""Client quotas: how fast users, client ids and addresses may use the broker, and their throttling.

Reading order: rates (the arithmetic), precedence (which quota applies to a client), client_quotas
with used_rates (both together), quotas (all of a broker), request_meter (what one request uses),
host_addresses (of quotas on addresses).
"""
