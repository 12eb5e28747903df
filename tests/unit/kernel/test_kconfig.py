# SPDX-License-Identifier: GPL-2.0-or-later
"""Kconfig fragments: read, merged, checked against the final .config."""

from __future__ import annotations

from pathlib import Path

import git
import pytest

from kpatch_ci.kernel.kconfig import Kconfigs, check, merged, parse_config, read_fragments
from kpatch_ci.model.errors import UserErrors

KCONFIG = """\
menuconfig SOUND
\tbool "Sound"

if SOUND

config SND_CARD
\ttristate "A card"
\tdepends on PCI && !LEGACY
\thelp
\t  depends on nothing that stands in a help text.

endif

config QUIET
\tbool
"""


@pytest.fixture
def kconfigs(tmp_path: Path) -> Kconfigs:
    repo = git.Repo.init(tmp_path / "tree")
    (tmp_path / "tree/Kconfig").write_text(KCONFIG)
    repo.index.add(["Kconfig"])
    repo.index.commit("tree")
    return Kconfigs(repo, repo.head.commit.tree.hexsha)


def test_a_later_fragment_overrides_an_earlier_one_and_the_merge_is_sorted(tmp_path: Path) -> None:
    (tmp_path / "a.config").write_text("# why\nCONFIG_SMP=y\nCONFIG_NR_CPUS=8\nCONFIG_VT=n\n")
    (tmp_path / "b.config").write_text("CONFIG_NR_CPUS=16\n# CONFIG_INET is not set\n")
    wanted = read_fragments([tmp_path / "a.config", tmp_path / "b.config"], "6.1.9")
    assert merged(wanted) == "# CONFIG_INET is not set\nCONFIG_NR_CPUS=16\nCONFIG_SMP=y\n# CONFIG_VT is not set\n"
    assert wanted["NR_CPUS"].where == "b.config:1"


def test_every_bad_line_and_missing_fragment_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.config").write_text("CONFIG_SMP=y\nSMP=y\nCONFIG_X\n")
    with pytest.raises(UserErrors) as caught:
        read_fragments([tmp_path / "a.config", tmp_path / "nope.config"], "6.1.9")
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[0].rsplit("/", 1)[1] for line in lines] == ["a.config:2", "a.config:3", "nope.config"]
    assert "there are: a" in lines[2]


def test_a_symbol_that_is_absent_counts_as_not_set() -> None:
    final = parse_config('CONFIG_SMP=y\n# CONFIG_VT is not set\nCONFIG_LOCALVERSION=""\n')
    assert final == {"SMP": "y", "VT": "n", "LOCALVERSION": '""'}


def test_a_missing_symbol_is_named_with_its_unmet_dependencies(tmp_path: Path, kconfigs: Kconfigs) -> None:
    (tmp_path / "f.config").write_text("CONFIG_SND_CARD=m\nCONFIG_QUIET=y\nCONFIG_NONE=y\nCONFIG_SOUND=n\n")
    wanted = read_fragments([tmp_path / "f.config"], "6.1.9")
    misses = {m.symbol: m for m in check(wanted, {"PCI": "y"}, kconfigs)}
    assert set(misses) == {"SND_CARD", "QUIET", "NONE"}
    assert misses["SND_CARD"].wanted == "m"
    assert misses["SND_CARD"].got == "n"
    assert misses["SND_CARD"].where == "f.config:1"
    assert misses["SND_CARD"].reason == "Kconfig:6 depends on PCI && !LEGACY && SOUND: not set: LEGACY, SOUND"
    assert "no prompt" in misses["QUIET"].reason
    assert misses["NONE"].reason == "this tree has no such symbol"


def test_a_value_that_differs_is_a_miss_too(tmp_path: Path) -> None:
    (tmp_path / "f.config").write_text("CONFIG_HZ=250\nCONFIG_SMP=y\n")
    misses = check(read_fragments([tmp_path / "f.config"], "6.1.9"), {"HZ": "100", "SMP": "y"})
    assert [(m.symbol, m.wanted, m.got) for m in misses] == [("HZ", "250", "100")]


def test_a_symbol_that_later_kernels_dropped_is_not_asked_of_them(tmp_path: Path) -> None:
    (tmp_path / "f.config").write_text("# before 6.10: then BASE_SMALL turned round\nCONFIG_BASE_FULL=y\n")
    assert set(read_fragments([tmp_path / "f.config"], "6.9.1")) == {"BASE_FULL"}
    assert set(read_fragments([tmp_path / "f.config"], "6.12.118")) == set()


def test_a_symbol_of_newer_kernels_is_not_asked_of_an_older_one(tmp_path: Path) -> None:
    (tmp_path / "f.config").write_text(
        "CONFIG_SMP=y\n# since 5.16: clusters\nCONFIG_SCHED_CLUSTER=y\nCONFIG_HZ_250=y\n"
    )
    assert set(read_fragments([tmp_path / "f.config"], "5.10.220")) == {"SMP", "HZ_250"}
    assert set(read_fragments([tmp_path / "f.config"], "6.1.140-rc1")) == {"SMP", "HZ_250", "SCHED_CLUSTER"}
