"""From an address to a connection that may be used: dial, agree on versions, sign in."""

from __future__ import annotations

import asyncio
import os

from broker_engine.client.config import BrokerAddress, ClientConfig, PlainCredentials
from broker_engine.client.connection import Connection
from broker_engine.client.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    UnsupportedVersion,
    error_for,
    known_code,
)
from broker_engine.errors import ErrorCode
from broker_engine.net.stream import Dialer, Stream
from broker_engine.wire.messages import api_versions
from broker_engine.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker_engine.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from broker_engine.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

SOFTWARE_NAME = "highwater"
SOFTWARE_VERSION = "0.1.0"

_SASL_HANDSHAKE_VERSION = 1  # version 0 would send the token outside of any request
_MECHANISM = "PLAIN"


async def open_connection(dialer: Dialer, address: BrokerAddress, config: ClientConfig) -> Connection:
    """ConnectionFailed, AuthenticationFailed or UnsupportedVersion; the socket is closed again in each case."""
    connection = Connection(
        await _dial(dialer, address, config),
        address,
        client_id=config.client_id,
        request_timeout_ms=config.request_timeout_ms,
        response_bytes_max=config.response_bytes_max,
    )
    try:
        await _agree_on_versions(connection, config.connect_timeout_ms)
        if config.sasl is not None:
            await _sign_in(connection, config.sasl, config.connect_timeout_ms)
    except BaseException:
        connection.close()
        raise
    return connection


async def _dial(dialer: Dialer, address: BrokerAddress, config: ClientConfig) -> Stream:
    try:
        async with asyncio.timeout(config.connect_timeout_ms / 1000):
            return await dialer.connect(address.host, address.port, tls=config.tls)
    except TimeoutError as error:
        reason = f"no answer within {config.connect_timeout_ms} ms; check the address, the network and any firewall"
        raise ConnectionFailed(str(address), reason) from error
    except OSError as error:
        reason = f"cannot connect ({_why(error)}); check the address, and that a broker listens there"
        raise ConnectionFailed(str(address), reason) from error


def _why(error: OSError) -> str:
    # asyncio puts the address into the text instead of the reason; a failed name look-up has a negative number.
    return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror or str(error)


async def _agree_on_versions(connection: Connection, timeout_ms: int) -> None:
    response = await _ask_versions(connection, api_versions.API.max_version, timeout_ms)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        response = await _ask_versions(connection, _highest_offered(response), timeout_ms)
    if response.error_code != ErrorCode.NONE:
        raise error_for(response.error_code, None, f"{connection.address} refused ApiVersions")
    connection.versions = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
    if response.finalized_features_epoch >= 0:  # else the broker does not know them
        connection.finalized_features = {each.name: each.max_version_level for each in response.finalized_features}


async def _ask_versions(connection: Connection, version: int, timeout_ms: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)
    return await connection.ask(request, ApiVersionsResponse, version=version, timeout_ms=timeout_ms)


def _highest_offered(response: ApiVersionsResponse) -> int:
    """A refusal names the range that the broker would take; a very old one names nothing and takes version 0."""
    for api in response.api_keys:
        if api.api_key == api_versions.API.key:
            return min(api.max_version, api_versions.API.max_version)
    return 0


async def _sign_in(connection: Connection, credentials: PlainCredentials, timeout_ms: int) -> None:
    await _choose_mechanism(connection, timeout_ms)
    response = await connection.ask(
        SaslAuthenticateRequest(auth_bytes=credentials.token()), SaslAuthenticateResponse, timeout_ms=timeout_ms
    )
    if response.error_code != ErrorCode.NONE:
        on_behalf = f" on behalf of {credentials.authorization_id!r}" if credentials.authorization_id else ""
        text = f"{connection.address} refused user {credentials.username!r}{on_behalf}: {response.error_message}"
        raise AuthenticationFailed(known_code(response.error_code), text)


async def _choose_mechanism(connection: Connection, timeout_ms: int) -> None:
    try:
        response = await connection.ask(
            SaslHandshakeRequest(mechanism=_MECHANISM),
            SaslHandshakeResponse,
            version=_SASL_HANDSHAKE_VERSION,
            timeout_ms=timeout_ms,
        )
    except UnsupportedVersion as error:
        raise AuthenticationFailed(error.code, f"{connection.address} does not offer SASL") from error
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        text = (
            f"{connection.address} does not take {_MECHANISM} here, only {', '.join(response.mechanisms) or 'nothing'}"
        )
        raise AuthenticationFailed(ErrorCode.UNSUPPORTED_SASL_MECHANISM, text)
    if response.error_code != ErrorCode.NONE:
        text = f"{connection.address} refused to begin SASL; does this listener authenticate at all?"
        raise AuthenticationFailed(known_code(response.error_code), text)
