import sqlite3
import unittest

from odradek.broker.testing import Broker
from outbox import MESSAGES, send_messages


class OutboxTest(unittest.TestCase):
    broker: Broker

    @classmethod
    def setUpClass(cls) -> None:
        cls.broker = cls.enterClassContext(Broker())

    def setUp(self) -> None:
        self.broker.reset()
        self.database = sqlite3.connect(":memory:")
        self.addCleanup(self.database.close)
        self.database.execute(MESSAGES)
        self.database.executemany("INSERT INTO messages (value) VALUES (?)", [(b"one",), (b"two",)])

    def left(self) -> int:
        return self.database.execute("SELECT count(*) FROM messages").fetchone()[0]

    def sent(self) -> list[bytes | None]:
        return [record.value for record in self.broker.records("messages")]

    def test_messages_that_are_sent_are_deleted(self) -> None:
        send_messages(self.database, self.broker.bootstrap_servers)
        self.assertEqual(self.sent(), [b"one", b"two"])
        self.assertEqual(self.left(), 0)

    def test_messages_stay_while_the_disk_of_the_broker_is_full(self) -> None:
        self.broker.create_topic("messages")
        self.broker.fill_disk()
        send_messages(self.database, self.broker.bootstrap_servers)
        self.assertEqual(self.left(), 2)
        self.broker.free_disk()
        send_messages(self.database, self.broker.bootstrap_servers)
        self.assertEqual(self.sent(), [b"one", b"two"])
        self.assertEqual(self.left(), 0)


if __name__ == "__main__":
    unittest.main()
