"""Mutates places of the product: `places` chooses them, `__main__` runs the tests of each."""
