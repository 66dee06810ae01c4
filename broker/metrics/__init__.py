"""Metrics for Prometheus, and the state of the broker, over HTTP (`odradek.http.listener`).

Requests only add to plain numbers. What the broker knows anyway, such as sizes, offsets and states,
is read when Prometheus asks. Without the listener nothing is counted.

Reading order:

durations, traffic, loop_delay   what is counted while the broker runs
counted_handlers                 counts requests around their handlers
metric                           one metric: name, labels, and the function that reads its values
*_metrics, catalogue             the metrics by subject; all of them
rendering                        the text that Prometheus reads, made in slices
readiness, http_server           whether the broker is ready; the HTTP server
monitoring                       puts the parts together
reference                        docs/metrics.md, made from the catalogue
"""
