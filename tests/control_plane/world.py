"""The small world in which control-plane and REST tests play: two tenants, their people, an engine, a queue."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.core.cache import cache
from pytest_django import Settings

from control_plane.accounts.models import User
from control_plane.celery import app
from control_plane.engine.factory import engine_in_place
from control_plane.tenants.actions import create_tenant
from control_plane.tenants.models import Membership, Role, Tenant
from tests.control_plane.memory_engine import MemoryEngine

PASSWORD = "correct horse battery"


@pytest.fixture
def engine() -> Iterator[MemoryEngine]:
    with engine_in_place(MemoryEngine()) as engine:
        assert isinstance(engine, MemoryEngine)
        yield engine


class Queue:
    """Celery's own in-memory transport, looked at from the worker's side."""

    def take_all(self) -> list[tuple[str, list[object]]]:
        taken = []
        with app.connection_for_read() as connection:
            waiting = connection.SimpleQueue("celery")
            while (message := waiting.queue.get()) is not None:
                message.ack()
                taken.append((message.headers["task"], message.payload[0]))
            waiting.close()
        return taken

    def run_all(self) -> None:
        for name, arguments in self.take_all():
            app.tasks[name](*arguments)


@pytest.fixture(autouse=True)
def queue() -> Queue:
    app.conf.update(broker_url="memory://localhost", broker_transport_options={})
    queue = Queue()
    queue.take_all()
    return queue


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@dataclass(frozen=True)
class House:
    """A tenant and one person per role."""

    tenant: Tenant
    owner: User
    developer: User
    viewer: User


def make_house(tenant_id: str) -> House:
    tenant = create_tenant(actor="operator@example.com", tenant_id=tenant_id, name=tenant_id.title())
    people = {role: User.objects.create_user(f"{role.value}@{tenant_id}.example", PASSWORD) for role in Role}
    for role, user in people.items():
        Membership.objects.create(tenant=tenant, user=user, role=role)
    return House(tenant, people[Role.OWNER], people[Role.DEVELOPER], people[Role.VIEWER])


@pytest.fixture
def demo(transactional_db: None, engine: MemoryEngine) -> House:
    return make_house("demo")


@pytest.fixture
def acme(transactional_db: None, engine: MemoryEngine) -> House:
    return make_house("acme")
