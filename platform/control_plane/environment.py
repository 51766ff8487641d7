"""What the process was told by its environment: one frozen, typed object, checked at start.

Every name starts with HIGHWATER_. Development needs none of them; production refuses to start without a secret key.
Only this module reads `os.environ` for the control plane.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

REPOSITORY = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ("development", "production")
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    name: str
    home: Path
    secret_key: str
    database_url: str | None
    redis_url: str | None
    engine: str
    engine_bootstrap: tuple[str, ...]
    engine_ca_file: Path | None
    cluster_secret: str | None
    cluster_secret_file: Path
    allowed_hosts: tuple[str, ...]
    public_url: str
    kafka_public: str

    @property
    def is_production(self) -> bool:
        return self.name == "production"

    def engine_tls(self) -> ssl.SSLContext | None:
        """How the internal listener is reached: by TLS, trusting this file alone, where one is named."""
        return ssl.create_default_context(cafile=self.engine_ca_file) if self.engine_ca_file else None

    def read_cluster_secret(self) -> str:
        """The internal listener's secret. Read at use: the first broker may write the file after our start."""
        if self.cluster_secret:
            return self.cluster_secret
        try:
            return self.cluster_secret_file.read_text(encoding="ascii").strip()
        except FileNotFoundError:
            raise ImproperlyConfigured(
                f"no cluster secret: {self.cluster_secret_file} does not exist yet (the first broker makes it) "
                "and HIGHWATER_CLUSTER_SECRET is not set"
            ) from None


def load(values: Mapping[str, str]) -> Environment:
    name = values.get("HIGHWATER_ENV") or "development"
    if name not in ENVIRONMENTS:
        raise ImproperlyConfigured(f"HIGHWATER_ENV is {name!r}: it must be one of {', '.join(ENVIRONMENTS)}")
    home = Path(values.get("HIGHWATER_HOME") or REPOSITORY / "var").absolute()
    public_url = (values.get("HIGHWATER_PUBLIC_URL") or "").rstrip("/")
    return Environment(
        name=name,
        home=home,
        secret_key=_secret_key(values, name, home),
        database_url=values.get("HIGHWATER_DATABASE_URL") or None,
        redis_url=values.get("HIGHWATER_REDIS_URL") or None,
        engine=values.get("HIGHWATER_ENGINE") or "highwater",
        engine_bootstrap=_words(values.get("HIGHWATER_ENGINE_BOOTSTRAP")) or ("127.0.0.1:9112",),
        engine_ca_file=Path(ca_file) if (ca_file := values.get("HIGHWATER_ENGINE_CA_FILE")) else None,
        cluster_secret=values.get("HIGHWATER_CLUSTER_SECRET") or None,
        cluster_secret_file=Path(values.get("HIGHWATER_CLUSTER_SECRET_FILE") or home / "cluster-secret"),
        allowed_hosts=_words(values.get("HIGHWATER_ALLOWED_HOSTS")) or _default_hosts(public_url),
        public_url=public_url,
        kafka_public=values.get("HIGHWATER_KAFKA_PUBLIC") or "127.0.0.1:9102",
    )


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def _default_hosts(public_url: str) -> tuple[str, ...]:
    host = urlsplit(public_url).hostname
    return LOOPBACK_HOSTS if host is None else (*LOOPBACK_HOSTS, host)


def _secret_key(values: Mapping[str, str], name: str, home: Path) -> str:
    if key := values.get("HIGHWATER_SECRET_KEY"):
        return key
    if name == "production":
        raise ImproperlyConfigured("HIGHWATER_SECRET_KEY is not set: production signs sessions and tokens with it")
    return _kept_secret_key(home / "secret-key")


def _kept_secret_key(path: Path) -> str:
    """A random key per installation, so that sessions outlive a restart and no two clones share one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.exists():
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(48))
        # Several processes start at once: the first link wins and everyone reads the winner's whole file.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_text(encoding="ascii").strip()
