"""`manage.py bootstrap_demo`: an operator, the demo tenant with a project, a member and a key. Development only."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from dataclasses import asdict

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from control_plane.tenants.demo import bootstrap

FILE_NAME = "demo-credentials.json"


class Command(BaseCommand):
    help = "Create the demo tenant and its people, once; print how to sign in, every time."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--json", action="store_true", dest="as_json", help="print the credentials as one JSON object"
        )

    def handle(self, *, as_json: bool, **_: object) -> None:
        if settings.HIGHWATER.is_production:
            raise CommandError("bootstrap_demo is for development: HIGHWATER_ENV is production")
        path = settings.HIGHWATER.home / FILE_NAME
        credentials = asdict(bootstrap(path))
        if as_json:
            self.stdout.write(json.dumps(credentials))
            return
        for name, value in credentials.items():
            self.stdout.write(f"{name:18} {value}")
        self.stdout.write(f"kept in {path}")
