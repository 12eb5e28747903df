# SPDX-License-Identifier: GPL-2.0-or-later
"""``engine:`` and ``store:`` of pipeline.yaml: where boots, replicates and builds run, and how artifacts get there (docs/cluster.md)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pydantic

from kpatch_ci.model.errors import UserError
from kpatch_ci.store.depot import Depot
from kpatch_ci.store.yamlmodel import Options, Strict

LOCAL = "local"
DEPLOYERS = {
    "dask.distributed.LocalCluster": "'kpatch-ci[cluster]'",
    "dask.distributed.SSHCluster": "'kpatch-ci[cluster]' asyncssh",
    "dask_jobqueue.HTCondorCluster": "dask-jobqueue",
    "dask_jobqueue.LSFCluster": "dask-jobqueue",
    "dask_jobqueue.OARCluster": "dask-jobqueue",
    "dask_jobqueue.PBSCluster": "dask-jobqueue",
    "dask_jobqueue.SGECluster": "dask-jobqueue",
    "dask_jobqueue.SLURMCluster": "dask-jobqueue",
    "dask_kubernetes.operator.KubeCluster": "dask-kubernetes",
}
"""Dask's own deployers, and what has them."""
EXPECTED = f"{LOCAL}, dask://HOST:PORT, dask+tls://HOST:PORT, or dask: {{cluster: DEPLOYER, options: {{...}}}}"
_ADDRESS = re.compile(r"dask(\+tls)?://(\[[0-9A-Fa-f:]+\]|[\w.-]+):(\d{1,5})/?")


class DaskFile(Strict):
    """A cluster that is started for the run. ``options`` are the deployer's own; ``scale``: how many workers to ask it for."""

    cluster: str
    options: Options = pydantic.Field(default_factory=dict)
    scale: int | None = pydantic.Field(default=None, gt=0)


class EngineFile(Strict):
    """``engine:`` where it is more than an address."""

    dask: DaskFile


class StoreFile(Strict):
    """``store:``. A text alone is the URL; ``options`` go to fsspec."""

    url: str
    options: Options = pydantic.Field(default_factory=dict)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _url_alone(cls, data: object) -> object:
        return {"url": data} if isinstance(data, str) else data


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """A scheduler's ``address`` as dask has it, or the import path of a ``deployer``. ``depot``: None where workers share this cache."""

    address: str = ""
    deployer: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    scale: int | None = None
    depot: Depot | None = None

    @property
    def shown(self) -> str:
        """As it was configured."""
        return re.sub(r"^(tcp|tls)", lambda m: {"tcp": "dask", "tls": "dask+tls"}[m[1]], self.address) or self.deployer


def engine_settings(engine: str | EngineFile, store: StoreFile | None) -> EngineSettings | None:
    """None: this machine alone. Raises UserError (``where`` is the key)."""
    depot = _depot(store)
    if isinstance(engine, str):
        if engine == LOCAL:
            return None
        found = _ADDRESS.fullmatch(engine)
        if not found or not 0 < int(found[3]) < 1 << 16:
            raise UserError(f"no engine '{engine}'", where="engine", expected=EXPECTED)
        scheme = "tls" if found[1] else "tcp"
        return EngineSettings(address=f"{scheme}://{found[2]}:{found[3]}", depot=depot)
    asked = engine.dask
    if asked.cluster not in DEPLOYERS:
        close = difflib.get_close_matches(asked.cluster, DEPLOYERS, 1, 0.4)
        expected = f"did you mean {close[0]}?" if close else f"one of {', '.join(DEPLOYERS)}"
        raise UserError(f"no deployer '{asked.cluster}'", where="engine", expected=expected)
    return EngineSettings(deployer=asked.cluster, options=asked.options, scale=asked.scale, depot=depot)


def _depot(store: StoreFile | None) -> Depot | None:
    if store is None:
        return None
    try:
        return Depot(store.url, store.options)
    except UserError as error:
        raise UserError(error.what, where="store", expected=error.expected) from error
