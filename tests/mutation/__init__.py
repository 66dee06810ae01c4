"""Mutates places of the product, and reports which of its tests notice.

Reading order: `places` (what may be mutated, and which places a seed chooses), `copy` (a copy of
the repository in which one mutant at a time is tested), `__main__` (the table).
"""
