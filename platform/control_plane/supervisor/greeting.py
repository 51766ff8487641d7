"""What the user sees when everything is up: where to go, how to sign in, three commands to try. Pure text."""

from __future__ import annotations

from control_plane.supervisor.demo import TOPIC
from control_plane.supervisor.plan import CLIENTS, DEMO, UpOptions
from control_plane.tenants.demo import DemoCredentials


def greeting(options: UpOptions, demo: DemoCredentials | None, *, python: str, has_confluent_kafka: bool) -> str:
    lines = ["", "Highwater is up.", "", f"  Dashboard   {options.public_url}"]
    if demo is not None:
        lines += [
            f"  Sign in     {demo.email}   password {demo.password}",
            f"  Operator    {demo.operator_email}   password {demo.operator_password}",
            f"  API key     {demo.api_key}:{demo.api_secret}",
        ]
    lines += [f"  REST        {options.public_url}/api/v1/docs", f"  Logs        {options.home / 'logs'}", ""]
    if demo is not None:
        lines += ["Three commands to try:", ""]
        for command in commands(options, demo, python=python, has_confluent_kafka=has_confluent_kafka):
            lines += [command, ""]
    else:
        lines += ["Make the first user with: python manage.py create_operator you@example.com", ""]
    return "\n".join([*lines, "Ctrl-C stops everything."])


def commands(options: UpOptions, demo: DemoCredentials, *, python: str, has_confluent_kafka: bool) -> list[str]:
    """Each works by itself, in any order, as often as one likes."""
    return [_kcat(options), _curl(options, demo), _python(options, demo, python, has_confluent_kafka)]


def _kcat(options: UpOptions) -> str:
    address = f"localhost:{options.port(DEMO, 1)}"
    return f"  echo hello | kcat -b {address} -P -t {TOPIC} && kcat -b {address} -C -t {TOPIC} -o beginning -e"


def _curl(options: UpOptions, demo: DemoCredentials) -> str:
    user = f"{demo.api_key}:{demo.api_secret}"
    return (
        f"  curl -u '{user}' -H 'Content-Type: application/json' -d '[{{\"value\": \"hello from curl\"}}]' "
        f"{options.public_url}/api/v1/topics/{TOPIC}/records"
    )


def _python(options: UpOptions, demo: DemoCredentials, python: str, has_confluent_kafka: bool) -> str:
    install = "" if has_confluent_kafka else f"{python} -m pip install -q confluent-kafka && "
    config = (
        f"{{'bootstrap.servers': '127.0.0.1:{options.port(CLIENTS, 1)}', 'security.protocol': 'SASL_PLAINTEXT', "
        f"'sasl.mechanism': 'PLAIN', 'sasl.username': '{demo.api_key}', 'sasl.password': '{demo.api_secret}'}}"
    )
    deliver = "on_delivery=lambda error, m: print(error or f'{m.topic()}[{m.partition()}] at offset {m.offset()}')"
    program = (
        f"from confluent_kafka import Producer; p = Producer({config}); "
        f"p.produce('{TOPIC}', b'hello from Python', {deliver}); p.flush(10)"
    )
    return f'  {install}{python} -c "{program}"'
