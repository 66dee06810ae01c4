"""Random conversations of group members, held with Apache Kafka and with odradek side by side.

    steps     what members of consumer groups say, as values whose words are symbols ("the epoch I
              heard of"); classic_steps: of classic groups; admin_steps: about offsets and topics
    participants      who speaks, and what a broker has told them: what the symbols stand for
    chooser   the next step, at random: mostly a sensible one, often a wrong one
    side      one broker's part: connections, what was sent
    duet      says each step to both brokers, and compares what comes back, also what comes later
    plain     answers and records without what may differ; offsets_log: what is left in the log
    excuses   where the two may go different ways, and why
    play      whole conversations: at random, or a script once more; shortens one that failed

A conversation has names of its own, so that it can be held again on the same two brokers. Since
steps are symbols, a script goes on making sense when some of its steps are left out.
"""
