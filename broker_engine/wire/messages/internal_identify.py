"""Identify (key 10004, private), version 0: one node asks another who it is, before either may be in a cluster.

A blank node has an empty cluster id. `leader_id` is -1 where the node knows no leader of the metadata quorum. With
`is_twin_sought` the asked node looks whether another process answers at the address of the one who asks.
"""

from __future__ import annotations

from broker_engine.wire.api import declare
from broker_engine.wire.kinds import Bool, Int16, Int32, String, Uuid
from broker_engine.wire.primitives import NULL_UUID
from broker_engine.wire.schema import Message


class IdentifyRequest(Message, versions="0"):
    cluster_id: String = ""
    node_id: Int32 = -1
    directory_id: Uuid = NULL_UUID
    incarnation_id: Uuid = NULL_UUID
    is_twin_sought: Bool = False


class IdentifyResponse(Message, versions="0"):
    error_code: Int16 = 0
    error_message: String | None = None
    cluster_id: String = ""
    node_id: Int32 = -1
    directory_id: Uuid = NULL_UUID
    leader_id: Int32 = -1
    leader_epoch: Int32 = -1
    is_blank: Bool = False
    is_controller: Bool = True
    incarnation_id: Uuid = NULL_UUID


API = declare(10004, "Identify", IdentifyRequest, IdentifyResponse, is_internal=True)
