# SPDX-License-Identifier: GPL-2.0-or-later
"""Series folders: series.yaml with the mails, ports and notes beside it; stacks of such; and series made of plain files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pydantic import Field

from kpatch_ci.model.errors import UserError, UserErrors
from kpatch_ci.model.series import Adds, Intake, Patch, Series, Switches
from kpatch_ci.series.claimfile import ClaimModel, claim_errors, read_claims
from kpatch_ci.series.claims import guessed, read_mails
from kpatch_ci.series.intake import read_patches, read_series, said
from kpatch_ci.series.variants import BY_SWITCH, full_name
from kpatch_ci.store.yamlmodel import Lines, Strict, read, validate

FILE = "series.yaml"

_VERSION = re.compile(r"\d+(\.\d+)*")
_WORD = re.compile(r"[A-Za-z0-9][\w.-]*")
_FOLDER_EXPECTED = "a folder with a series.yaml that names files: (mails) or stack: (other series)"

Names = tuple[str, ...]


class AddsModel(Strict):
    """``adds:`` of series.yaml."""

    symbols: Names = ()
    sysctls: Names = ()
    sched_features: Names = ()


class SwitchesModel(Strict):
    """``switches:`` of series.yaml: what turns the change off in a running kernel."""

    sched_features: Names = ()
    sysctls: dict[str, str | int] = Field(default_factory=dict)


class VariantModel(Strict):
    """One of ``variants:``: patches that both arms have besides."""

    baseline_patches: Names = Field(min_length=1)
    ports: dict[str, Names] = Field(default_factory=dict)
    title: str = ""
    notes: str = ""
    claims: tuple[ClaimModel, ...] = ()


class SeriesModel(Strict):
    """series.yaml: either ``files:`` (mails, in order) or ``stack:`` (names of other series, in order)."""

    title: str = Field(min_length=1)
    origin: str = ""
    files: Names = ()
    stack: Names = ()
    ports: dict[str, Names | dict[str, Names]] = Field(default_factory=dict)
    paths: Names = ()
    workloads: Names = ()
    adds: AddsModel = AddsModel()
    switches: SwitchesModel = SwitchesModel()
    variants: dict[str, VariantModel] = Field(default_factory=dict)
    claims: tuple[ClaimModel, ...] = ()
    notes: str = ""


def load_series(folder: Path, all_folders: Path) -> Series:
    """The series in ``folder``; members of a stack are folders of ``all_folders``.

    Raises UserErrors with all that is wrong in series.yaml, UserError for a mail that cannot be read or a stack that
    contains itself.
    """
    return _load(folder, all_folders, ())


def folder_variants(folder: Path, all_folders: Path) -> tuple[str, ...]:
    """Names of the variants that a folder's series has, mails unread; none where its series.yaml is damaged."""
    try:
        data, lines = read(folder / FILE)
        model = validate(data, SeriesModel, lines)
    except UserError:
        return ()
    members = [folder_variants(all_folders / name, all_folders) for name in model.stack if name != folder.name]
    switched = model.switches != SwitchesModel() or any(set(BY_SWITCH) <= set(names) for names in members)
    return (*model.variants, *(BY_SWITCH if switched else ()))


def series_from_files(paths: Sequence[Path], name: str, revision: int | None = None) -> Series:
    """A series of plain patch files, directories and whatever else intake takes. Raises UserError for what cannot be read."""
    if not paths:
        raise UserError("no patch given", expected="files or directories with patches")
    patches, account = read_series(paths, revision)
    return series_from_patches(patches, account, name, ", ".join(str(path) for path in paths))


def series_from_patches(patches: tuple[Patch, ...], account: Intake, name: str, origin: str) -> Series:
    """A series of patches that were read; what intake has to say about them as a whole is in its notes, for reports."""
    title = patches[0].subject if len(patches) == 1 else f"{patches[0].subject} (and {len(patches) - 1} more)"
    touched = tuple(dict.fromkeys(path for patch in patches for path in patch.paths))
    return Series(
        name,
        title,
        origin,
        patches,
        paths=touched,
        notes="\n".join(said(account)),
        intake=account,
        claims=guessed(read_mails(patches, account)),
    )


def _load(folder: Path, all_folders: Path, above: tuple[str, ...]) -> Series:
    name = folder.name
    if name in above:
        loop = " -> ".join((*above[above.index(name) :], name))
        raise UserError(f"a stack contains itself: {loop}", where=str(folder / FILE), expected="a stack without a loop")
    if not (folder / FILE).is_file():
        raise UserError(f"no series {name}: there is no {FILE}", where=str(folder), expected=_FOLDER_EXPECTED)
    data, lines = read(folder / FILE)
    _refuse_numbers(data, lines)
    model = validate(data, SeriesModel, lines)
    errors = _contradictions(model, lines, folder, all_folders)
    if errors:
        raise UserErrors(errors)
    patches = _patches(folder, model.files)  # none of a stack, which has no text of its own
    if errors := _claim_errors(model, lines, patches):
        raise UserErrors(errors)
    if model.stack:
        return _stack(model, lines, all_folders, (*above, name), name)
    series = _series(name, model, patches, _ports(folder, model.ports))
    return replace(series, variants={key: _variant(series, key, one, folder) for key, one in model.variants.items()})


def _patches(folder: Path, files: Names) -> tuple[Patch, ...]:
    return tuple(chain.from_iterable(read_patches(folder / file) for file in files))


def _ports(folder: Path, ports: Mapping[str, Names | Mapping[str, Names]]) -> dict[str, tuple[Patch, ...]]:
    return {prefix: _patches(folder, files) for prefix, files in ports.items() if isinstance(files, tuple)}


def _variant(series: Series, key: str, model: VariantModel, folder: Path) -> Series:
    """The series on other baseline patches; its own ports win over the series'."""
    name = full_name(series.name, key)
    below = _patches(folder, model.baseline_patches)
    base = Series(f"{name}-baseline", f"baseline patches of {name}", "", below)
    return replace(
        series,
        name=name,
        title=model.title or f"{series.title} ({key})",
        notes=model.notes.strip(),
        ports={**series.ports, **_ports(folder, model.ports)},
        claims=read_claims(model.claims, series.patches) if model.claims else series.claims,
        variant=key,
        base=base,
    )


def _claim_errors(model: SeriesModel, lines: Lines, patches: Sequence[Patch]) -> list[UserError]:
    """What is wrong with ``claims:``, its own and its variants'."""
    asked = {("claims",): model.claims} | {
        ("variants", key, "claims"): one.claims for key, one in model.variants.items()
    }
    return [error for loc, entries in asked.items() for error in claim_errors(entries, patches, loc, lines)]


def _stack(model: SeriesModel, lines: Lines, all_folders: Path, above: tuple[str, ...], name: str) -> Series:
    folder = Path(lines.name).parent
    members = [_load(all_folders / member, all_folders, above) for member in model.stack]
    for prefix, by_member in model.ports.items():
        if isinstance(by_member, Mapping):
            for position, member in enumerate(members):
                files = by_member.get(member.name, ())
                if files:
                    port = tuple(chain.from_iterable(read_patches(folder / file) for file in files))
                    members[position] = replace(member, ports={**member.ports, prefix: port})
    patches = tuple(chain.from_iterable(member.patches for member in members))
    series = _series(name, model, patches, {})
    adds = [series.adds, *(member.adds for member in members)]
    off = [series.switches, *(member.switches for member in members)]
    return replace(
        series,
        members=tuple(members),
        paths=_united(series.paths, *(member.paths for member in members)),
        workloads=series.workloads or _united(*(member.workloads for member in members)),
        adds=Adds(
            symbols=_united(*(a.symbols for a in adds)),
            sysctls=_united(*(a.sysctls for a in adds)),
            sched_features=_united(*(a.sched_features for a in adds)),
        ),
        switches=Switches(
            sched_features=_united(*(o.sched_features for o in off)),
            sysctls=tuple(dict(chain.from_iterable(o.sysctls for o in off)).items()),
        ),
    )


def _series(
    name: str, model: SeriesModel, patches: tuple[Patch, ...], ports: Mapping[str, tuple[Patch, ...]]
) -> Series:
    touched = () if model.stack else _united(*(patch.paths for patch in patches))
    return Series(
        name=name,
        title=model.title,
        origin=model.origin,
        patches=patches,
        ports=ports,
        paths=model.paths or touched,
        workloads=model.workloads,
        adds=Adds(model.adds.symbols, model.adds.sysctls, model.adds.sched_features),
        notes=model.notes.strip(),
        switches=Switches(
            model.switches.sched_features, tuple((key, str(value)) for key, value in model.switches.sysctls.items())
        ),
        claims=read_claims(model.claims, () if model.stack else patches),
    )


def _united(*lists: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(lists)))


def _refuse_numbers(data: object, lines: Lines) -> None:
    """A version without quotes is a number to YAML, and 6.10 would be 6.1."""
    ports = data.get("ports") if isinstance(data, Mapping) else None
    wrong = [key for key in ports if not isinstance(key, str)] if isinstance(ports, Mapping) else []
    if wrong:
        where, expected = lines.where(("ports",)), 'quotes, such as "6.10"'
        what = "ports: a version without quotes is the number {} to YAML"
        raise UserErrors([UserError(what.format(key), where=where, expected=expected) for key in wrong])


def _contradictions(model: SeriesModel, lines: Lines, folder: Path, all_folders: Path) -> list[UserError]:
    """What the model alone cannot tell: every error at once."""
    errors = []
    if bool(model.files) == bool(model.stack):
        what = "both files and stack" if model.files else "neither files nor stack"
        errors.append(UserError(f"{what} given", where=lines.where(("stack",)), expected="exactly one of the two"))
    errors += _file_errors(model.files, ("files",), lines, folder)
    for position, member in enumerate(model.stack):
        if not (all_folders / member / FILE).is_file():
            known = ", ".join(sorted(path.parent.name for path in all_folders.glob(f"*/{FILE}")))
            where = lines.where(("stack", position))
            errors.append(UserError(f"stack: no series {member}", where=where, expected=f"one of {known}"))
    for prefix, port in model.ports.items():
        errors += _port_errors(("ports", prefix), port, model, lines, folder)
    for key, one in model.variants.items():
        errors += _variant_errors(key, one, model, lines, folder)
    return errors


def _variant_errors(key: str, one: VariantModel, model: SeriesModel, lines: Lines, folder: Path) -> list[UserError]:
    loc = ("variants", key)
    if model.stack:
        return [UserError("variants: of a stack", where=lines.where(loc), expected="variants of its members")]
    errors = []
    if key in BY_SWITCH or not _WORD.fullmatch(key):
        expected = f"letters, digits, . _ and -, and none of {', '.join(BY_SWITCH)} (those come of `switches:`)"
        errors.append(UserError(f"variants: '{key}' cannot be its name", where=lines.where(loc), expected=expected))
    errors += _file_errors(one.baseline_patches, (*loc, "baseline_patches"), lines, folder)
    for prefix, port in one.ports.items():
        errors += _port_errors((*loc, "ports", prefix), port, model, lines, folder)
    return errors


def _port_errors(
    loc: tuple[str, ...], port: Names | Mapping[str, Names], model: SeriesModel, lines: Lines, folder: Path
) -> list[UserError]:
    prefix = loc[-1]
    if not _VERSION.fullmatch(prefix):
        return [UserError(f"ports: {prefix} is no version", where=lines.where(loc), expected='such as "6.1"')]
    if isinstance(port, Mapping) != bool(model.stack):
        expected = "member: [files] for a stack" if model.stack else "a list of files"
        return [UserError(f"ports.{prefix} is not of the right form", where=lines.where(loc), expected=expected)]
    if not port:
        return [UserError(f"ports.{prefix} is empty", where=lines.where(loc), expected="the files of the port")]
    if not isinstance(port, Mapping):
        return _file_errors(port, loc, lines, folder)
    errors = []
    for member, files in port.items():
        if member not in model.stack:
            where, known = lines.where((*loc, member)), ", ".join(model.stack)
            errors.append(UserError(f"ports.{prefix}: no member {member}", where=where, expected=f"one of {known}"))
        errors += _file_errors(files, (*loc, member), lines, folder)
    return errors


def _file_errors(files: Names, loc: tuple[str, ...], lines: Lines, folder: Path) -> list[UserError]:
    root = folder.resolve()
    errors = []
    for position, file in enumerate(files):
        where = lines.where((*loc, position))
        if not (root / file).resolve().is_relative_to(root):
            errors.append(UserError(f"{file} is outside the folder", where=where, expected="a file below series.yaml"))
        elif not (root / file).exists():
            errors.append(UserError(f"no file {file}", where=where, expected=f"a file below {folder}"))
    return errors
