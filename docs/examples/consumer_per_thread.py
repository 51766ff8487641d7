"""A consumer per thread: as many threads as there shall be members, each with a consumer of its own.

python docs/examples/consumer_per_thread.py --bootstrap 127.0.0.1:9092 --topic orders --threads 3

A consumer is never shared between threads. Each partition belongs to one thread, so its records are handled in their
order, and so are those of one key. Offsets are committed after the work: a crash repeats what was not committed.
"""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message

Work = Callable[[Message], None]


def consume(settings: dict[str, object], topic: str, work: Work, is_over: threading.Event) -> None:
    """The life of one thread."""
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        while not is_over.is_set():
            messages = consumer.consume(100, timeout=0.5)
            for message in messages:
                error = message.error()
                if error is None:
                    work(message)
                elif not error.retriable():
                    raise KafkaException(error)
            if any(message.error() is None for message in messages):
                consumer.commit(asynchronous=False)
    finally:
        consumer.close()  # leaves the group at once: the others need not wait for a session to end


def run(settings: dict[str, object], topic: str, work: Work, thread_count: int, is_over: threading.Event) -> None:
    threads = [threading.Thread(target=consume, args=(settings, topic, work, is_over)) for _ in range(thread_count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def say(message: Message) -> None:
    key = (message.key() or b"").decode()
    line = f"{threading.current_thread().name} {message.partition()} {message.offset()} {key}\n"
    print(line, end="", flush=True)  # in one piece: other threads print too


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bootstrap", default="127.0.0.1:9092")
    parser.add_argument("--topic", required=True)
    parser.add_argument("--group", default="per-thread")
    parser.add_argument("--threads", type=int, default=3)
    given = parser.parse_args()
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    signal.signal(signal.SIGINT, lambda *_: is_over.set())
    settings: dict[str, object] = {"bootstrap.servers": given.bootstrap, "group.id": given.group}
    run({**settings, "auto.offset.reset": "earliest"}, given.topic, say, given.threads, is_over)


if __name__ == "__main__":
    main()
