"""Which listeners serve everyone: beyond this machine, and without authentication.

The log names them in a warning. The console is not served in this way: see check_console.
"""

from collections.abc import Iterable
from ipaddress import ip_address

from odradek.broker.network.listeners import BoundListener
from odradek.config.broker_config import BrokerConfig
from odradek.config.errors import invalid_value
from odradek.config.listeners import SecurityProtocol


def exposure_warning(config: BrokerConfig, bound: Iterable[BoundListener]) -> str | None:
    """One line for the log about the listeners that serve everyone; None if there are none."""
    exposed = [
        f"{each.listener.name} ({each.listener.host or '*'}:{each.port})"
        for each in bound
        if _is_reachable(each) and not _authenticates(config, each)
    ]
    if not exposed:
        return None
    return (
        f"everyone who can reach {', '.join(exposed)} may use this broker: there is no"
        " authentication; require it, or listen on localhost only"
    )


def check_console(config: BrokerConfig, bound: BoundListener) -> None:
    """Raise ConfigError if everyone who can reach the HTTP listener could use the console."""
    if _is_reachable(bound) and not _logs_in(config):
        text = (
            "must be on this machine only, such as localhost:8080, because odradek.console needs no"
            " login here: require one (SASL) at a listener, or switch the console off"
        )
        raise invalid_value("odradek.http.listener", config.odradek_http_listener, text)


def _is_reachable(bound: BoundListener) -> bool:
    """Whether other machines may connect."""
    return not all(ip_address(sock.getsockname()[0]).is_loopback for sock in bound.sockets)


def _authenticates(config: BrokerConfig, bound: BoundListener) -> bool:
    if bound.listener == config.registry_listener:
        return _logs_in(config)
    protocol = bound.listener.security_protocol
    if protocol is SecurityProtocol.SSL:
        return config.of_listener(bound.listener.name).value("ssl.client.auth") == "required"
    return protocol is not SecurityProtocol.PLAINTEXT


def _logs_in(config: BrokerConfig) -> bool:
    """Whether HTTP requires a login (http/logins.py)."""
    return any(each.security_protocol.uses_sasl for each in config.open_listeners)
