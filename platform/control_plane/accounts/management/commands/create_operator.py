"""`manage.py create_operator EMAIL`: an account above all tenants."""

from __future__ import annotations

import getpass
import os
import sys
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from control_plane.accounts.actions import create_account
from control_plane.refusals import Refusal


class Command(BaseCommand):
    help = "Create an operator. The password is asked for, or read from HIGHWATER_PASSWORD or standard input."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")
        parser.add_argument("--name", default="")

    def handle(self, *, email: str, name: str, **_: object) -> None:
        try:
            create_account(actor="manage.py", email=email, password=read_password(), name=name, is_operator=True)
        except Refusal as refusal:
            raise CommandError(str(refusal)) from None
        self.stdout.write(f"{email} is an operator now")


def read_password() -> str:
    """Never from an argument: those are in everyone's process list."""
    if password := os.environ.get("HIGHWATER_PASSWORD"):
        return password
    return getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
