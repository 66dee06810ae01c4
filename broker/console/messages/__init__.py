"""Records for the console: read in steps, filtered, decoded, and written.

A request never reads a whole topic. It reads by Fetch, at most a few MiB, and returns a cursor with
which the next request continues. Batches that are large, or unpack to much, are read in another
process (broker/processes/record_walks.py). To read in this order:

filters          which records a client wants; paths into JSON
picking          takes records out of a batch, here or in another process
reading          a topic's partitions, their offsets, and the batches of a partition
scanning         a page of records of several partitions, newest or oldest first
cursors          where the next page begins, as text
live             what is new
avro_values      values of Avro, read with limits
schemas          the schemas of values, from the topic _schemas
internal_values  records of internal topics as JSON, here or in another process
decoding         a key or a value as text
partitioning     the partition of a key
"""
