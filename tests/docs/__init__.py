"""Tests of the documentation, and the pages of it that are generated from the code.

`python -m tests.docs` writes the generated pages; a test fails where one is out of date.
"""
