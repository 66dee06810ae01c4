"""`odradek verify`: walks whole data directories, says what is wrong and what a start would do.

It only reads. `directories` looks at what lies in a log directory, `partition` at one log, the
watches (`index_watch`, `epoch_watch`, …) see its batches go by; `findings` is what they tell.
"""
