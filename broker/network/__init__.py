"""Sockets and connections: cuts received bytes into frames and sends the answers.

Reading order: listeners, acceptor, server, connection; then what connections share (frame_memory,
connection_limits).
"""
