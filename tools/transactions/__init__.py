"""What `__transaction_state` says about the open transactions of logs.

`stored_transactions` collects its records, `ownership` finds the transactional id that will end an
open transaction, and says what to do about one that nobody will end.
"""
