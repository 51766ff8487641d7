"""Django settings, derived from `control_plane.environment` alone. One module serves development and production."""

from __future__ import annotations

import os
from typing import Any

import dj_database_url

from control_plane.environment import REPOSITORY, load

HIGHWATER = load(os.environ)

SECRET_KEY = HIGHWATER.secret_key
DEBUG = False  # Django's debug pages would show the control plane's secrets; the log carries the tracebacks instead.
ALLOWED_HOSTS = list(HIGHWATER.allowed_hosts)
ROOT_URLCONF = "web.urls"
ASGI_APPLICATION = "web.asgi.application"
APPEND_SLASH = False  # The REST contract's URLs have no trailing slash, and a redirect would lose a POST's body.

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "control_plane.accounts",
    "control_plane.tenants",
    "control_plane.audit",
    "control_plane.topics",
    "control_plane.keys",
    "control_plane.engine",
    "control_plane.cluster",
    "control_plane.drift",
    "control_plane.live",
    "control_plane.supervisor",
    "api",
    "web",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]


def _database() -> dict[str, Any]:
    if HIGHWATER.database_url:
        return dict(dj_database_url.parse(HIGHWATER.database_url, conn_max_age=60, conn_health_checks=True))
    HIGHWATER.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": HIGHWATER.home / "control-plane.sqlite3",
        "OPTIONS": {
            # WAL lets readers go on beside one writer; IMMEDIATE queues writers for `timeout` seconds
            # instead of failing the second one with "database is locked" in the middle of its transaction.
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;",
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
        },
    }


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = HIGHWATER.is_production
CSRF_COOKIE_SECURE = HIGHWATER.is_production
# Behind a proxy that ends TLS the request looks like http: the public origin is trusted by name.
CSRF_TRUSTED_ORIGINS = [HIGHWATER.public_url] if HIGHWATER.public_url else []
SECURE_HSTS_SECONDS = 3600 if HIGHWATER.is_production else 0
X_FRAME_OPTIONS = "DENY"

STATIC_URL = "/static/"
STATIC_ROOT = REPOSITORY / "staticfiles"
# The files of a plain clone are served from their own folders: `collectstatic` is for images and packages.
WHITENOISE_USE_FINDERS = True

CACHES: dict[str, dict[str, Any]]
CHANNEL_LAYERS: dict[str, dict[str, Any]]
if HIGHWATER.redis_url:
    CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": HIGHWATER.redis_url}}
    CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.core.RedisChannelLayer", "CONFIG": {"hosts": [HIGHWATER.redis_url]}}
    }
else:
    # Django's default of 300 entries would let a guesser push out the record of their own failures.
    memory = {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 100_000}}
    CACHES = {"default": memory}
    CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}


def _celery_transport() -> dict[str, Any]:
    if HIGHWATER.redis_url:
        # A task that a killed worker held comes back after this time; the periodic task is faster anyway.
        return {"visibility_timeout": 60}
    folders = {name: HIGHWATER.home / "celery" / name for name in ("queue", "processed", "control")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)  # worker and beat both want them to be there already
    return {
        # Both folders are one: what a process puts out is what another takes in.
        "data_folder_in": str(folders["queue"]),
        "data_folder_out": str(folders["queue"]),
        "processed_folder": str(folders["processed"]),
        "control_folder": str(folders["control"]),
        "store_processed": False,
        "polling_interval": 0.1,
    }


DRIFT_INTERVAL_S = 30.0 if HIGHWATER.is_production else 5.0

CELERY_BROKER_URL = HIGHWATER.redis_url or "filesystem://localhost//"
CELERY_BROKER_TRANSPORT_OPTIONS = _celery_transport()
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BEAT_SCHEDULE_FILENAME = str(HIGHWATER.home / "celery" / "beat-schedule")
CELERY_BEAT_SCHEDULE = {
    "mend-drift": {
        "task": "control_plane.drift.tasks.mend_drift",
        "schedule": DRIFT_INTERVAL_S,
        # A run that waited longer than the interval is worth nothing: the next one looks at everything again.
        "options": {"expires": DRIFT_INTERVAL_S},
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["api.authentication.CallerAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["api.parsing.JsonParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "api.exceptions.handle_exception",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Highwater",
    "DESCRIPTION": "Topics, records, keys and members of a tenant. Errors are RFC 9457 problem documents.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "TopicStatus": "control_plane.topics.models.State",
        "Role": "control_plane.tenants.models.Role",
        "ApiKeyStatus": "api.api_keys.STATUSES",
        "BrokerStatus": "api.cluster.STATUSES",
        "Trouble": "api.cluster.TROUBLES",
        "GroupStatus": "api.group_schema.STATUSES",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "api.schema.complete_document",
    ],
}

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": "INFO"},
}
