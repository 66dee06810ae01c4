"""Random transactions, held with Apache Kafka and with odradek side by side.

    participants             the producers, and what a broker has told them
    producer_steps   what producers say: InitProducerId, Produce, EndTxn, ...
    admin_steps      what administrators and readers say: markers, Fetch, ListTransactions, ...
    chooser          the next step, at random: mostly a sensible one, often a wrong one
    side             one broker's part, and the states of its transactions
    duet             says each step to both brokers, and waits until transactions are completed
    plain            answers and records without what may differ; logs: what the logs contain
    excuses          where the two may go different ways, and why
    play             whole conversations, with clean restarts and kills between their acts

Members of groups take part too: their steps, and what is common to both kinds of conversations, are
those of random_groups.
"""
