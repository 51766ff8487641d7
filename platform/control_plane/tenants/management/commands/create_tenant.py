"""`manage.py create_tenant ID --owner EMAIL`: a tenant and its first owner, who gets an account if there is none."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from control_plane.accounts.actions import create_account
from control_plane.accounts.management.commands.create_operator import read_password
from control_plane.accounts.models import User
from control_plane.refusals import Refusal
from control_plane.tenants.actions import add_member, create_tenant
from control_plane.tenants.models import Role

ACTOR = "manage.py"


class Command(BaseCommand):
    help = "Create a tenant with one owner. A new owner's password: HIGHWATER_PASSWORD or standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tenant_id")
        parser.add_argument("--name", default="")
        parser.add_argument("--owner", required=True, metavar="EMAIL")

    def handle(self, *, tenant_id: str, name: str, owner: str, **_: object) -> None:
        try:
            with transaction.atomic():
                if not User.objects.filter(email=owner.strip().lower()).exists():
                    create_account(actor=ACTOR, email=owner, password=read_password())
                tenant = create_tenant(actor=ACTOR, tenant_id=tenant_id, name=name or tenant_id)
                add_member(actor=ACTOR, tenant=tenant, email=owner, role=Role.OWNER)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(f"tenant {tenant_id} is there, its cluster id is {tenant.cluster_id}, its owner is {owner}")
