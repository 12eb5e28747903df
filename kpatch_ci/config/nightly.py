# SPDX-License-Identifier: GPL-2.0-or-later
"""``nightly:`` of pipeline.yaml -> settings: every error at once with its line and the valid choices."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from email.headerregistry import Address
from pathlib import Path

from kpatch_ci.board.file import load_any
from kpatch_ci.config.entries import choices
from kpatch_ci.config.history import parse_limit
from kpatch_ci.config.load import Config, Selection, load_config
from kpatch_ci.config.nightly_schema import ItemFile, MailFile
from kpatch_ci.config.schema import DEFAULT_PROFILE, PipelineFile
from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.history import Limit
from kpatch_ci.series.folder import folder_variants
from kpatch_ci.series.variants import SEPARATOR
from kpatch_ci.store.yamlmodel import Lines, read, validate

KEY = "nightly"
EXAMPLE = "nightly: [{name: stable, tree: 'debian:6.1', series: [wakeup-gran], profile: quick}]; see docs/nightly.md"
_NAME = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Item:
    """A tree at its tip and what is tested on it. Empty means the file's own."""

    name: str
    tree: str
    series: tuple[str, ...] = ()
    profile: str = DEFAULT_PROFILE
    workloads: tuple[str, ...] = ()
    arches: tuple[str, ...] = ()

    def config(self, path: Path) -> Config:
        """The pipeline of this item. Raises UserError."""
        chosen = Selection(
            series=self.series, arches=self.arches, workloads=self.workloads, profile=self.profile, tree=self.tree
        )
        return load_config(path, chosen)


@dataclass(frozen=True, slots=True)
class MailSettings:
    """``send``: never, news (when something happened) or always."""

    to: tuple[str, ...]
    sender: str
    send: str
    sendmail: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NightlySettings:
    """Everything that a night needs to know. ``limits``: for alerts, in front of the history's."""

    path: Path
    items: tuple[Item, ...]
    site: Path
    results: Path
    url: str = ""
    mail: MailSettings | None = None
    limits: Mapping[str, Limit] = field(default_factory=dict)


def read_nightly(path: Path) -> NightlySettings:
    """Those of a pipeline file, checked with all that they name. Raises UserError, UserErrors."""
    load_config(path)  # the rest of the file, first: what is wrong there would be said once an item
    data, lines = read(path)
    model = validate(data, PipelineFile, lines)
    if model.nightly is None:
        raise UserError("has no `nightly:`, so there is nothing to do", where=str(path), expected=EXAMPLE)
    checker = _Checker(model, lines, path.absolute().parent)
    items = tuple(checker.item(index, one) for index, one in enumerate(model.nightly.items))
    checker.unique([item.name for item in items])
    limits = checker.limits(model.nightly.thresholds)
    mail = checker.mail(model.nightly.mail) if model.nightly.mail else None
    checker.raise_all()
    here = path.absolute().parent
    return NightlySettings(
        path=path,
        items=items,
        site=here / Path(model.nightly.site).expanduser(),
        results=here / Path(model.nightly.results).expanduser(),
        url=(model.nightly.url or "").rstrip("/"),
        mail=mail,
        limits=limits,
    )


class _Checker:
    """Names that must exist beside the file. Collects errors."""

    def __init__(self, model: PipelineFile, lines: Lines, root: Path) -> None:
        self._model, self._lines, self._root = model, lines, root
        self._errors: list[UserError] = []
        self._series = self._all_series()

    def _all_series(self) -> list[str]:
        folders = self._root / "patches"
        names = sorted(p.parent.name for p in folders.glob("*/series.yaml"))
        variants = [f"{n}{SEPARATOR}{v}" for n in names for v in folder_variants(folders / n, folders)]
        return [*names, *variants]

    def item(self, index: int, one: ItemFile) -> Item:
        profile = one.profile or DEFAULT_PROFILE
        self._known(index, "series", one.series, self._series)
        self._known(index, "workloads", one.workloads, list(self._model.workloads))
        self._known(index, "profile", (profile,), [DEFAULT_PROFILE, *self._model.profiles])
        self._known(index, "arches", one.arches, self._arches(profile))
        tree = one.tree or self._model.tree
        name = one.name or re.sub(r"[^\w.+-]+", "-", tree, flags=re.ASCII).strip("-.+") or f"item-{index + 1}"
        if not _NAME.fullmatch(name):
            self._add(f"an item cannot be called '{name}'", (index, "name"), "letters, digits and . _ + -")
        return Item(name, tree, one.series, profile, one.workloads, one.arches)

    def _arches(self, profile: str) -> list[str]:
        chosen = self._model.profiles.get(profile)
        names = (chosen.machines if chosen else None) or self._model.machines
        return [str(load_any(self._root / "qemu" / f"{name}.yaml").arch) for name in names]

    def unique(self, names: list[str]) -> None:
        for index, name in enumerate(names):
            if name in names[:index]:
                self._add(f"two items are called '{name}'", (index,), "a `name:` of its own for each")

    def limits(self, given: Mapping[str, str | float | int]) -> dict[str, Limit]:
        found = {}
        for name, text in given.items():
            try:
                found[name] = parse_limit(name, text)
            except UserError as error:
                where = self._lines.where((KEY, "thresholds", name))
                self._errors.append(
                    UserError(f"nightly.thresholds: {error.what}", where=where, expected=error.expected)
                )
        return found

    def mail(self, model: MailFile) -> MailSettings:
        for text in (*model.to, model.sender):
            try:
                Address(addr_spec=text)
            except (ValueError, IndexError, TypeError):
                fault = f"nightly.mail: '{text}' is no mail address"
                self._errors.append(UserError(fault, where=self._lines.where((KEY, "mail")), expected="name@host"))
        return MailSettings(model.to, model.sender, model.send, model.sendmail)

    def _known(self, index: int, key: str, given: Collection[str], known: Collection[str]) -> None:
        for name in given:
            if name not in known:
                self._add(f"no {key} '{name}'", (index, key), choices(name, known))

    def _add(self, what: str, loc: tuple[str | int, ...], expected: str) -> None:
        where = self._lines.where((KEY, "items", *loc))
        self._errors.append(UserError(f"nightly: {what}", where=where, expected=expected))

    def raise_all(self) -> None:
        if self._errors:
            raise UserErrors(sorted(self._errors, key=lambda e: int(str(e.where).rpartition(":")[2])))
