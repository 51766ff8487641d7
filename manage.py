#!/usr/bin/env python
"""Django's command line for Highwater: `python manage.py help`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Appended, not inserted: nothing in platform/ may ever win over the standard library.
sys.path.append(str(Path(__file__).resolve().parent / "platform"))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "control_plane.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
