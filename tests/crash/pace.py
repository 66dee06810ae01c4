"""How fast the writers write, and how patient they are."""

PARTITIONS = 3
BURST = 20
PAUSE_SECONDS = 0.02
UNANSWERED = 5000  # how many records may be under way
DELIVERY_SECONDS = 300
