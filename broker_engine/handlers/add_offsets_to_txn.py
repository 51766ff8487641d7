"""AddOffsetsToTxn (key 25), versions 0-4: the partition of `__consumer_offsets` that holds the group joins the
transaction. Below version 2 a fenced producer gets 47, not 90.
"""

from __future__ import annotations

from broker_engine.errors import BrokerError, ErrorCode
from broker_engine.handlers.api import Api, Call, Scope
from broker_engine.handlers.groups import any_group_name
from broker_engine.handlers.transactions import code_for, transaction_name
from broker_engine.names import CONSUMER_OFFSETS
from broker_engine.transactions.transaction import Producer
from broker_engine.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FIRST_VERSION_WITH_FENCED = 2


async def handle(request: AddOffsetsToTxnRequest, call: Call) -> AddOffsetsToTxnResponse:
    name = transaction_name(call, request.transactional_id)
    groups = call.broker.groups
    index = groups.partition_of(any_group_name(call, request.group_id))
    if index is None:
        groups.ensure_topic()
        raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group has no coordinator yet")
    producer = Producer(request.producer_id, request.producer_epoch)
    code = await call.broker.transactions.add_partitions(name, producer, [(CONSUMER_OFFSETS, index)])
    return AddOffsetsToTxnResponse(
        error_code=code_for(code, call.version, first_version_with_fenced=_FIRST_VERSION_WITH_FENCED)
    )


def refuse(request: AddOffsetsToTxnRequest, error: BrokerError) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error.code)


API = Api(request=AddOffsetsToTxnRequest, scope=Scope.TRANSACTIONS, handle=handle, refuse=refuse)
