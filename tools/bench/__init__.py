"""`odradek bench`: measures a broker, and compares it with a machine of two cores."""
