"""For which systems there are wheels of all that odradek needs: `python -m tests.wheels`.

Asks pip for each system and writes the table of docs/compatibility/systems.md.
"""
