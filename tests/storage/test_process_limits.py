"""The limit of open files, which a broker raises as far as the system allows."""

import sys

import pytest

from odradek.storage.process_limits import PLAIN_DESCRIPTOR_LIMIT, raise_descriptor_limit

resource = pytest.importorskip("resource")

REFUSALS = [ValueError("current limit exceeds maximum limit"), OSError(22, "Invalid argument")]


class System:
    """A system with these limits, which refuses to set limits above the highest one."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        limits: tuple[int, int],
        highest: int = sys.maxsize,
        refusal: Exception = REFUSALS[0],
    ) -> None:
        self.limits = limits
        self._highest = highest
        self._refusal = refusal
        monkeypatch.setattr(resource, "getrlimit", lambda _: self.limits)
        monkeypatch.setattr(resource, "setrlimit", self._set)

    def _set(self, _: int, limits: tuple[int, int]) -> None:
        if not 0 <= limits[0] <= self._highest:
            raise self._refusal
        self.limits = limits


def test_the_limit_is_raised_to_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch, (256, 4096))
    raise_descriptor_limit()
    assert system.limits == (4096, 4096)


@pytest.mark.parametrize("refusal", REFUSALS, ids=["ValueError", "OSError"])
def test_a_system_that_refuses_its_maximum_gets_a_plain_limit(
    monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    maximum = resource.RLIM_INFINITY
    system = System(monkeypatch, (256, maximum), PLAIN_DESCRIPTOR_LIMIT, refusal)
    raise_descriptor_limit()
    assert system.limits == (PLAIN_DESCRIPTOR_LIMIT, maximum)


@pytest.mark.parametrize("limits", [(256, 4096), (20_000, 30_000)])
def test_a_limit_that_cannot_be_raised_stays(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int]
) -> None:
    system = System(monkeypatch, limits, limits[0])
    raise_descriptor_limit()
    assert system.limits == limits
