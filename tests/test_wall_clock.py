"""Every use of the wall clock in the broker, with its reason. A new one needs a reason, too.

The wall clock jumps: an administrator sets it, or NTP corrects it. So it is only for times that
users and disk formats see. Waits, ages in memory and intervals are measured by a clock that never
jumps (`timer_ms`, the loop's time, `time.monotonic`).

A use is: a call or a reference of a function that reads the clock (`time.time`, `datetime.now`,
`wall_clock_ms`), a read of an attribute `now_ms` or `wall_ms`, a call of a function of such a name,
and a calculation or comparison with a variable of such a name. An argument that is only passed on
is none. Arguments of the timer clock are often called `now_ms`, too. One table lists the functions
that calculate with them.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("broker", "coordinator", "storage")
WITHOUT = ROOT / "broker" / "testing"  # users' tests set the clocks there
NAMES = {"now_ms", "_now_ms", "wall_ms", "_wall_ms"}
SOURCES = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime", "asctime", "strftime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}

REASONS = {
    "the timestamp of records that are written (topics, metadata, groups, transactions)": """
        broker/admin/config_admin.py: _commit
        broker/admin/quota_admin.py: _alter
        broker/admin/topic_admin.py: _create _create_partitions _delete
        broker/broker.py: _assign_directory _cordon _register close
        broker/node.py: _lead _load
        broker/cluster/cluster.py: _apply _led_again
        broker/console/views/messages.py: produce
        broker/directory_failures.py: _record
        broker/handlers/alter_user_scram_credentials.py: handle
        broker/handlers/create_acls.py: handle
        broker/handlers/delete_acls.py: delete
        broker/handlers/delete_share_group_state.py: delete
        broker/handlers/describe_quorum.py: partition_data
        broker/handlers/elect_leaders.py: handle
        broker/handlers/init_producer_id.py: handle
        broker/handlers/initialize_share_group_state.py: initialize
        broker/handlers/produce.py: append_late append_to_partition
        broker/handlers/read_share_group_state.py: read
        broker/handlers/txn_offset_commit.py: answer_later
        broker/handlers/unregister_controller.py: handle
        broker/handlers/update_features.py: finalize
        broker/handlers/write_share_group_state.py: write
        broker/handlers/write_txn_markers.py: write_to_partition
        broker/maintenance/metadata_snapshots.py: write
        broker/producing/produced_transactions.py: verify_when_ended
        broker/producing/quick_produce.py: append_partition append_single check_all
        broker/shares/dead_letter_queues.py: _record
        broker/maintenance/own_appends.py: append
        broker/registry/schema_log.py: append
        broker/shares/shares.py: _read _store
        broker/telemetry/pushed_records.py: _record
        coordinator/groups/classic_group_service.py: _commit join leave
        coordinator/classic_groups/rebalance.py: complete rebalance
        coordinator/groups/regex_resolution.py: _start
        coordinator/consumer_groups/downgrade.py: _classic_group
        coordinator/groups/group_admin.py: _delete
        coordinator/metadata/metadata_snapshot.py: build
        coordinator/modern_groups/target_assignment.py: write_targets
        coordinator/groups/group_decisions.py: _decided decide
        coordinator/groups/modern_group_commits.py: commit
        coordinator/groups/offset_requests.py: _record
        coordinator/groups/offset_retention.py: _delete
        coordinator/groups/offset_service.py: _commit commit commit_in_transaction delete
        coordinator/share_state/share_coordinator.py: _commit
        coordinator/groups/share_group_service.py: _create_states _delete_states create_lost_state
        coordinator/share_groups/heartbeat.py: _initialization
        coordinator/share_groups/start_offsets.py: alter
        coordinator/transactions/transaction_coordinator.py: _commit_and_complete _end _fence
        coordinator/transactions/transaction_coordinator.py: _next_producer_id add_partitions
        coordinator/transactions/transaction_coordinator.py: init_producer_id
        coordinator/transactions/completion.py: _try _write_completed _write_markers
    """,
    "times that the console shows": """
        broker/console/views/connections.py: _described
        broker/console/views/maintenance.py: _cleaner
        broker/maintenance/cleaning/log_cleaner.py: apply_retention
    """,
    "the clock itself, or handed on to what uses it": """
        broker/broker.py: __init__ _create_admin _create_own_appends _create_pushed_records
        broker/node.py: _create_maintenance
        broker/common/clock.py: __init__ now wall_clock_ms
        broker/lifecycle/running.py: open_broker
        broker/maintenance/cleaning/log_cleaner.py: _start_round
        broker/requests/dispatch.py: __init__
        broker/security/sasl/login_mechanisms.py: _tokens _wall_ms
    """,
    "calculates with a `now_ms` that is a time of the timer clock": """
        broker/admin/recent_deletions.py: _keep
        broker/network/answer_sender.py: _has_cached_pages
        broker/quotas/rates.py: _refill _window_ms record
        broker/quotas/request_meter.py: take_permits
        broker/quotas/used_rates.py: _forget_inactive
        broker/fetching/fetch_sessions.py: _create _evict
        broker/security/denials.py: log
        broker/security/sasl/authenticator.py: _is_in_time _may_reauthenticate
        broker/security/sasl/failed_logins.py: note
        broker/security/sasl/issuer_keys.py: note_missing
        broker/telemetry/client_series.py: push_of remove_expired
        broker/telemetry/instances.py: heard_of may_get may_push remove_expired
        coordinator/consumer_groups/classic_joins.py: _schedule_sync_deadline
        coordinator/metadata/snapshot_keeping.py: due_reason
        coordinator/share_partitions/changes.py: expire
        coordinator/runtime/timers.py: _due
        storage/deletions.py: take_due
        storage/log_manager.py: logs_to_flush
        storage/producer_state.py: remove_expired_verifications
    """,
    "expiry of tokens and certificates, whose times are absolute": """
        broker/broker.py: _remove_expired_tokens
        broker/handlers/create_delegation_token.py: handle
        broker/handlers/expire_delegation_token.py: handle
        broker/handlers/renew_delegation_token.py: handle
        broker/security/sasl/authenticator.py: _lifetime_ms
        broker/security/sasl/signed_tokens.py: _check_times
        broker/security/sasl/token_credentials.py: credential_of
        broker/security/sasl/unsecured_tokens.py: validate
        broker/security/tls/listener_tls.py: utc_of
        broker/security/tls/tls_listeners.py: _take_over warn_of_expiry
        coordinator/metadata/token_changes.py: _sum is_expired
    """,
    "the age of a transaction since its journaled start, as shown to users": """
        broker/console/views/overview.py: _long_transactions
        broker/console/views/transactions.py: _view
        broker/handlers/list_transactions.py: handle
        broker/metrics/group_metrics.py: _oldest_transaction_seconds
        coordinator/transactions/transaction_coordinator.py: _abort
    """,
    "a moment of the timer clock, as shown to users": """
        broker/console/groups/deliveries.py: _ranges
        broker/console/views/overview.py: overview
    """,
    "segment.ms of segments whose records have no timestamps, as in Kafka": """
        broker/maintenance/cleaning/cleaning_round.py: _swap
        storage/cleaning/offset_map_build.py: _start_in
        storage/directories/log_creation.py: _open
        storage/recovering/segment_loading.py: open_segment
        storage/segment.py: age_ms
    """,
    "retention and cleaning by the time of records, which writers set": """
        broker/console/views/segments.py: segments
        broker/maintenance/cleaning/cleaning_choice.py: due
        broker/maintenance/cleaning/cleaning_round.py: run
        broker/maintenance/cleaning/log_cleaner.py: assess
        broker/maintenance/metadata_snapshots.py: clean
        broker/maintenance/retention_check.py: _check
        coordinator/metadata/snapshot_keeping.py: is_old
        storage/cleaning/batch_filter.py: __init__ _keep_sound
        storage/cleaning/plan.py: _compaction_delay_ms _too_young
        storage/retention.py: is_old
        storage/retention_explanation.py: _by_age
    """,
    "delete horizons of the cleaner: they are in the batches": """
        storage/cleaning/cleaned_batch.py: delete_horizon
    """,
    "inactivity since a time that a log holds (batch, commit, snapshot), as in Kafka": """
        broker/maintenance/log_recovery.py: _open _recover
        broker/periodic_tasks.py: expire_producers
        coordinator/groups/offset_expiry.py: _is_expired
        coordinator/groups/offset_requests.py: commit_offsets
        coordinator/groups/offset_retention.py: _check
        coordinator/share_state/share_coordinator.py: _write_cold_snapshots
        coordinator/share_groups/state_partitions.py: recent
        coordinator/share_state/table.py: cold_snapshot
        coordinator/transactions/transaction_coordinator.py: _remove_some
        coordinator/transactions/table.py: expire
        storage/producer_state.py: _is_expired
        storage/recovering/recovery.py: _check_end _check_txn_indexes _end_of_last_segment load_log
        storage/recovering/task.py: recover
        storage/recovering/unflushed.py: recover_unflushed
    """,
    "bounds of the timestamps that clients set (message.timestamp.*.max.ms)": """
        storage/batch_validator.py: _needs_walk read_ordinary_batch
        storage/record_walk.py: _bounds _out_of_bounds
    """,
    "a lookup by time in the records": """
        broker/handlers/list_offsets.py: list_starts
        broker/shares/led_partition.py: start_offset
    """,
    "conversion of a journaled time to the timer clock": """
        coordinator/runtime/timers.py: note
    """,
    "read for each request; also says which request is timed, at once after a jump": """
        broker/requests/timed_requests.py: handle_timed
        broker/requests/dispatch.py: _serve
    """,
}


def uses_in(tree: ast.AST, function: str = "") -> Iterator[str]:
    """The functions that use the wall clock, once for each use."""
    for node in ast.iter_child_nodes(tree):
        if is_use(node):
            yield function
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from uses_in(node, node.name)
        else:
            yield from uses_in(node, function)


def is_use(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()):
            return name in NAMES or name in SOURCES.get(last_name(value), ())
        case ast.ImportFrom(module="time", names=names):
            return any(each.name in SOURCES["time"] for each in names)
        case ast.Name(id="wall_clock_ms", ctx=ast.Load()):
            return True
        case ast.Call(func=ast.Name(id=name), args=operands):
            return name in NAMES or (name in ("max", "min") and has_time(operands))
        case ast.BinOp(left=left, right=right):
            return has_time([left, right])
        case ast.Compare(left=left, comparators=others):
            return has_time([left, *others])
    return False


def last_name(node: ast.AST) -> str:
    """`datetime` of `datetime`, and of `datetime.datetime`."""
    return getattr(node, "attr", getattr(node, "id", ""))


def has_time(operands: list[ast.expr]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in NAMES for each in operands)


def found_uses() -> set[str]:
    uses = set()
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if not path.is_relative_to(WITHOUT):
                name = path.relative_to(ROOT).as_posix()
                functions = uses_in(ast.parse(path.read_text()))
                uses |= {f"{name}: {function}" for function in functions}
    return uses


def listed_uses(tables: Mapping[str, str]) -> dict[str, list[str]]:
    """The reasons of each use in the tables."""
    reasons = defaultdict(list)
    for reason, table in tables.items():
        for line in table.split("\n"):
            path, _, functions = line.strip().partition(": ")
            for function in functions.split():
                reasons[f"{path}: {function}"].append(reason)
    return reasons


def test_every_use_of_the_wall_clock_has_a_reason() -> None:
    listed = listed_uses(REASONS)
    found = found_uses()
    assert sorted(found - listed.keys()) == [], "without a reason in REASONS: use a timer clock?"
    assert sorted(listed.keys() - found) == [], "they do not use the wall clock any more"
    assert {use: reasons for use, reasons in listed.items() if len(reasons) > 1} == {}


def test_the_ways_to_read_the_wall_clock_are_found() -> None:
    source = """
from time import time_ns
import datetime, time
def a(): return time.time()
def b(): return datetime.datetime.now(datetime.UTC)
def c(broker): broker.wait(until=broker.now_ms() + 5)
def d(context): return context.now_ms
def e(clock): return clock().wall_ms
def f(now_ms): return now_ms - 5
def g(now_ms): return 5 < now_ms
def h(now_ms): return now_ms()
def i(now_ms): return max(now_ms, 5)
def passes_on(now_ms): return g(now_ms)
def monotonic(): return time.monotonic() + timer_ms()
"""
    assert sorted(set(uses_in(ast.parse(source)))) == ["", *"abcdefghi"]
