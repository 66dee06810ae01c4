"""Sockets and connections: from bytes on a socket to frames, and answers back to the socket.

Reading order: listeners, acceptor, server, connection; then what connections share (frame_memory,
group_turns).
"""
