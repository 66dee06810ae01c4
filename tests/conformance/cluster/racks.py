"""Reading from the replica in the client's rack (KIP-392): node N is in rack-N."""

from tests.conformance.cluster.asked import fetch, list_offsets, produce
from tests.conformance.cluster.talk import ClusterTalk, metadata

LEADER, FOLLOWER, OTHER = 2, 3, 1


def clients_read_in_their_rack(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("racks", [LEADER, FOLLOWER])
    talk.ask(LEADER, produce("racks", "one", "two"), "written")
    talk.wait_for_followers("racks", 0, 2)
    talk.ask(1, metadata("racks"))
    for node in (LEADER, FOLLOWER, OTHER):
        for rack in ("", "rack-1", "rack-2", "rack-3", "elsewhere"):
            asked = fetch("racks", topic_id=topic_id, version=18, rack=rack)
            talk.ask(node, asked, f"from '{rack}'")
        asked = fetch("racks", topic_id=topic_id, version=11, rack="rack-3")
        talk.ask(node, asked, "from 'rack-3'")
        asked = fetch("racks", 2, topic_id=topic_id, version=18, rack="rack-3")
        talk.ask(node, asked, "at the end")
        asked = fetch("racks", 9, topic_id=topic_id, version=18, rack="rack-3")
        talk.ask(node, asked, "after the end")
    start = fetch("racks", topic_id=topic_id, version=18, rack="rack-3", session=(0, 0))
    session = talk.ask(LEADER, start, "a session starts").session_id
    for epoch in (1, 2):
        asked = fetch("racks", version=18, rack="rack-3", session=(session, epoch), empty=True)
        talk.ask(LEADER, asked, "it goes on")
    asked = fetch("racks", topic_id=topic_id, version=18, rack="rack-3", leader_epoch=0)
    talk.ask(FOLLOWER, asked, "with the epoch")
    asked = fetch("racks", topic_id=topic_id, version=18, rack="rack-3", leader_epoch=1)
    talk.ask(FOLLOWER, asked, "with a later epoch")
    talk.ask(FOLLOWER, list_offsets("racks", -1), "positions")


def a_dead_replica_is_not_preferred(talk: ClusterTalk) -> None:
    topic_id = talk.create_topic("rackless", [LEADER, FOLLOWER])
    talk.ask(LEADER, produce("rackless", "one", "two"), "written")
    talk.wait_for_followers("rackless", 0, 2)
    asked = fetch("rackless", topic_id=topic_id, version=18, rack="rack-3")
    talk.ask(LEADER, asked, "alive")
    talk.kill(FOLLOWER)
    talk.wait_for_state("rackless", leader=LEADER, isr=[LEADER])
    talk.ask(LEADER, asked, "dead")
    talk.start(FOLLOWER)
    talk.wait_for_state("rackless", leader=LEADER, isr=[LEADER, FOLLOWER])
    talk.ask(LEADER, asked, "back", lambda answer: answer.responses[0].partitions[0].error_code)
