"""Principals as people write them: `alice` stands for `User:alice`."""


def principal_text(text: str) -> str:
    """A principal as Kafka writes it, TYPE:NAME."""
    return text if ":" in text else f"User:{text}"
