"""`manage.py create_account EMAIL`: an account without any rights yet; a tenant's owner adds it as a member."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from control_plane.accounts.actions import create_account
from control_plane.accounts.management.commands.create_operator import read_password
from control_plane.refusals import Refusal


class Command(BaseCommand):
    help = "Create an account. The password is asked for, or read from HIGHWATER_PASSWORD or standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="")

    def handle(self, *, email: str, name: str, **_: object) -> None:
        try:
            create_account(actor="manage.py", email=email, password=read_password(), name=name)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(f"{email} has an account now; an owner adds it to a tenant (POST /api/v1/members)")
