"""A Quix Streams application: counts the visits of each page."""

from pathlib import Path

from quixstreams import Application, State


def count_visits(bootstrap_servers: str, state: Path) -> Application:
    """Consume `visits`, and produce the count of a page to `counts` at each visit.

    The counts are kept in the directory `state`, and in a changelog topic.
    """
    application = Application(
        broker_address=bootstrap_servers,
        consumer_group="visits",
        auto_offset_reset="earliest",
        state_dir=state,
    )

    def count(_: object, state: State) -> int:
        total = state.get("total", 0) + 1
        state.set("total", total)
        return total

    visits = application.dataframe(application.topic("visits", value_deserializer="str"))
    visits.apply(count, stateful=True).to_topic(application.topic("counts"))
    return application
