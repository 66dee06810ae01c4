"""What Java's classes do and other languages do not, where clients or files show it."""
