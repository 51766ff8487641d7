"""How a node takes part in the metadata quorum, by its configs and its directory."""

from __future__ import annotations

from collections.abc import Mapping

from broker_engine.config import BrokerConfig, Endpoint
from broker_engine.quorum.state import Timing
from broker_engine.quorum.voter_set import VoterEndpoint
from broker_engine.server.data_dir import Meta
from broker_engine.server.metadata_driver import QuorumOptions


def quorum_options(config: BrokerConfig, meta: Meta, voters: Mapping[int, Endpoint]) -> QuorumOptions:
    """`voters` are the nodes in `--quorum`."""
    named = voters.get(config.node_id)
    return QuorumOptions(
        cluster_id=meta.cluster_id,
        is_founder=meta.is_founder or not voters,
        may_vote=config.is_controller,
        named_ids=tuple(voters),
        endpoints=() if named is None else (VoterEndpoint(named.name, named.host, named.port),),
        timing=Timing(
            election_timeout_ms=config.controller_quorum_election_timeout_ms,
            fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
            election_backoff_ms_max=config.controller_quorum_election_backoff_max_ms,
        ),
        snapshot_bytes=config.metadata_log_max_record_bytes_between_snapshots,
        snapshot_interval_ms=config.metadata_log_max_snapshot_interval_ms,
    )
