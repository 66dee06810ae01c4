"""`odradek doctor`: finds out why clients cannot work with a broker, and says what to do."""
