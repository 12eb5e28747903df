# SPDX-License-Identifier: GPL-2.0-or-later
"""How the cluster comes about: a scheduler that runs already, or one of dask's own deployers that starts it."""

from __future__ import annotations

import importlib
import logging
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kpatch_ci.config.cluster import DEPLOYERS, EngineSettings
from kpatch_ci.model.errors import InfrastructureError, UserError

CONNECT_TIMEOUT = 10.0
EXTRA = "pip install 'kpatch-ci[cluster]'"


@dataclass(frozen=True, slots=True)
class Connection:
    """``client`` is distributed's; ``cluster`` what a deployer started, or None."""

    client: Any
    cluster: Any
    shown: str

    def close(self) -> None:
        """Leave; what was started is stopped."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.client.close(timeout=5)
            if self.cluster is not None:
                self.cluster.close()


def connect(settings: EngineSettings) -> Connection:
    """To the scheduler that the configuration names, or to one that is started now. Raises InfrastructureError or UserError."""
    try:
        with _signals_kept():
            distributed: Any = importlib.import_module("distributed")  # an extra, and slow to import
    except ImportError as error:
        raise InfrastructureError(f"engine {settings.shown}: {error}", hint=EXTRA) from error
    _hush()
    cluster = None if settings.address else _start(settings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unlike versions: workers are asked, and named
            client = distributed.Client(
                settings.address or cluster, timeout=CONNECT_TIMEOUT, set_as_default=False, name="kpatch-ci"
            )
    except (OSError, ValueError, TypeError) as error:
        why = " ".join(str(error).split())
        hint = "is `dask scheduler` running there, and its port open to this machine?"
        raise InfrastructureError(f"no dask scheduler answers at {settings.shown}: {why}", hint=hint) from error
    return Connection(client, cluster, settings.shown)


def _hush() -> None:
    """What matters of dask's own messages is said by us. Its loggers have levels of their own."""
    names = [name for name in logging.root.manager.loggerDict if name.split(".")[0] == "distributed"]
    for name in ("distributed", *names):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """What a library makes of signals while it is imported is undone: with dask-jobqueue's Ctrl-C ends the process as a success."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _start(settings: EngineSettings) -> Any:
    package = DEPLOYERS[settings.deployer]
    module, _, name = settings.deployer.rpartition(".")
    try:
        with _signals_kept():
            made = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise InfrastructureError(f"engine {settings.deployer}: {error}", hint=f"pip install {package}") from error
    try:
        cluster = made(**settings.options)
        if settings.scale:
            cluster.scale(settings.scale)
    except (TypeError, ValueError) as error:  # an option that it does not know or cannot use
        raise UserError(f"engine {settings.deployer}: {error}", where="engine: options") from error
    except Exception as error:  # each deployer has its own
        raise InfrastructureError(
            f"{settings.deployer} did not start a cluster: {' '.join(str(error).split())}"
        ) from error
    return cluster
