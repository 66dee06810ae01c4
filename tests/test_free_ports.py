"""Ports of brokers, which several runs of the tests on one machine divide."""

import socket

import pytest

from tests.support.broker_process import free_ports


def test_a_port_that_is_held_serves_its_broker_and_is_no_other_ones() -> None:
    (port,) = free_ports(1)
    with socket.socket() as other_run, pytest.raises(OSError, match="in use"):
        other_run.bind(("127.0.0.1", port))
    address = ("127.0.0.1", port)
    for _ in range(2):  # a broker, and again after its restart
        with socket.create_server(address) as server, socket.create_connection(address) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
