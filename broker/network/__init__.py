"""Sockets and connections: cuts received bytes into frames and sends the answers.

Reading order: listeners, acceptor, server, connection with its parts (receive_buffer,
serving_state, answer_sender); then what connections share (frame_memory, connection_limits).
"""
