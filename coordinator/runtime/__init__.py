"""What every coordinator and the metadata use. Nothing here imports another room.

Reading order:

outcome, record_codec    what a state machine returns; typed records and their bytes
journal, sliced_replay   append and replay; load a log at start
steps, copies            long work that gives way; copies into which it is replayed
shards, load_queue       the partitions of an internal topic, loaded or not; loading while serving
timers, alarm            deadlines (the time is an argument); the event loop's timer for them
parked_replies           replies that wait for other requests
in_turns, part_queue     what is done in later turns of the event loop
producer                 the producer that writes a record, or none
"""
