"""Proof of docs/guarantees.md: directories that power cuts could leave, and calls that fail.

life       a broker works; `JournalledFiles` records what it does to its disk -> journal
images     a journal, cut anywhere -> directories that a power cut could leave there
failing    a disk on which the n-th call fails; life_over_errors: what may follow then
claims     a broker starts on such a directory -> what is promised holds, or what does not
"""
