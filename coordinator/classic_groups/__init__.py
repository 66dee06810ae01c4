"""Groups of the classic protocol: members elect a protocol, and their leader assigns the work."""
