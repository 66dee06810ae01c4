"""A package, so that tests import `tests.support` wherever pytest runs them from."""
