"""How Produce is served. The handler is handlers/produce.py.

A request takes one of two ways, with the same result:

single_batch, quick_produce     requests in which nothing is out of the ordinary, in one pass
produced_batches                all others: the batches of a request, and which are refused
produced_transactions           those of transactions, checked by transactions/verification
accepted_produce, produce_answers       the answers
"""
