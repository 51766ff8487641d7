"""kafka-python, unmodified."""

from __future__ import annotations

from functools import partial

from tests.compatibility.python_drivers.common import (
    RESET_STATES,
    Feature,
    main,
)
from tests.compatibility.python_drivers.kpython import admin, assignors, groups, producing, reading

FEATURES: dict[str, Feature] = {
    "acks-0": partial(producing.acks, setting=0),
    "acks-1": partial(producing.acks, setting=1),
    "acks-all": partial(producing.acks, setting="all"),
    "send-forget": producing.send_forget,
    "send-sync": partial(producing.acks, setting="all"),
    "send-callback": producing.send_callback,
    "codec-none": partial(producing.codec, name=None),
    **{f"codec-{name}": partial(producing.codec, name=name) for name in ("gzip", "snappy", "lz4", "zstd")},
    "headers": producing.headers,
    "idempotent": producing.idempotent,
    "txn-commit": producing.txn_commit,
    "txn-abort": producing.txn_abort,
    "txn-fencing": producing.txn_fencing,
    "txn-offsets": producing.txn_offsets,
    "read-committed": producing.read_committed,
    "group-classic": groups.group,
    "cooperative": groups.cooperative,
    "assignor-sticky": assignors.sticky,
    "assignor-custom": assignors.custom,
    "static-member": groups.static_member,
    "rebalance-listener": groups.rebalance_listener,
    "regex": reading.regex,
    "pause-resume": reading.pause_resume,
    "seek": reading.seek,
    "outside-store": reading.outside_store,
    "commit-auto": reading.commit_auto,
    "commit-sync": reading.commit_sync,
    "commit-async": reading.commit_async,
    **{
        f"reset-earliest-{state}": partial(reading.reset_earliest, start=start) for state, start in RESET_STATES.items()
    },
    **{f"reset-latest-{state}": reading.reset_latest for state in RESET_STATES},
    **{f"reset-none-{state}": reading.reset_none for state in RESET_STATES},
    "admin-create": admin.admin_create,
    "admin-describe": admin.admin_describe,
    "admin-configs": admin.admin_configs,
    "admin-delete-records": admin.admin_delete_records,
    "admin-groups": admin.admin_groups,
    "admin-delete-group": admin.admin_delete_group,
    "admin-offsets": admin.admin_offsets,
    "admin-alter-offsets": admin.admin_alter_offsets,
}

if __name__ == "__main__":
    main(FEATURES)
