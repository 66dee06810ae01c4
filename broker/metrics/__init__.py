"""Metrics for Prometheus, and the state of the broker, over HTTP (`odradek.http.listener`).

Requests only add to plain numbers. What the broker knows anyway, such as sizes, offsets and states,
is read when Prometheus asks (common/traffic has the numbers). Without the listener no request is
counted, and nothing of this room is imported.

Reading order:

loop_delay                       how late the timers of the event loop are
observed, metric                 what metrics are read from; the definition of one metric
*_metrics, catalogue             the metrics by subject; all of them
rendering                        the text that Prometheus reads, made in slices
readiness                        whether the broker is ready
monitoring                       puts the parts together
reference                        makes docs/metrics.md from the catalogue
"""
