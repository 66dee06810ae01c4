"""Members of a consumer group, each a process that can be killed.

They say what happens in the words of Kafka's VerifiableConsumer, one JSON object a line, and like
it they commit what they have read after each poll. Run as a module, with the bootstrap address,
the topic and the group as arguments; SIGTERM makes a member leave its group and end.
"""
