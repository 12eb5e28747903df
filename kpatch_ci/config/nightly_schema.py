# SPDX-License-Identifier: GPL-2.0-or-later
"""What ``nightly:`` of pipeline.yaml may say."""

from __future__ import annotations

from typing import Literal

import pydantic

from kpatch_ci.store.yamlmodel import Strict


class MailFile(Strict):
    """The night's mail. It is always written as a file; ``send`` says when it is given to ``sendmail``."""

    to: tuple[str, ...] = pydantic.Field(min_length=1)
    sender: str = pydantic.Field("kpatch-ci@localhost", alias="from")
    send: Literal["never", "news", "always"] = "never"
    sendmail: tuple[str, ...] = pydantic.Field(("/usr/sbin/sendmail", "-t", "-i"), min_length=1)

    @pydantic.field_validator("to", mode="before")
    @classmethod
    def _one(cls, data: object) -> object:
        return (data,) if isinstance(data, str) else data


class ItemFile(Strict):
    """One item: a tree at its tip and the series that are tested on it. What is left out is the file's own."""

    name: str | None = None
    tree: str | None = None
    series: tuple[str, ...] = ()
    profile: str | None = None
    workloads: tuple[str, ...] = ()
    arches: tuple[str, ...] = ()


class NightlyFile(Strict):
    """A list alone is the items."""

    items: tuple[ItemFile, ...] = pydantic.Field(min_length=1)
    site: str = "nightly-site"
    results: str = "results/nightly"
    url: str | None = None
    """Where the site will be seen: the feed and the mail need whole addresses."""
    mail: MailFile | None = None
    thresholds: dict[str, str | float | int] = pydantic.Field(default_factory=dict)
    """In front of those of ``history:``."""

    @pydantic.model_validator(mode="before")
    @classmethod
    def _items_alone(cls, data: object) -> object:
        return {"items": data} if isinstance(data, list | tuple) else data
