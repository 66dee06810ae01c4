"""Client telemetry (KIP-714): which metrics clients push, and what is done with them.

Clients ask for their subscription, and push metrics as OTLP (OpenTelemetry's protobuf messages).

Reading order:

instances           the clients that have asked, and when each may ask or push again
otlp                reads the metrics out of OTLP bytes
payloads            decompresses and reads what is pushed, at a bounded cost
client_series       the last values, for /metrics: a bounded number of series
pushed_records      writes what is pushed to a topic
client_telemetry    serves the two requests, with the parts above
"""
