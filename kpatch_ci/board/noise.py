# SPDX-License-Identifier: GPL-2.0-or-later
"""What else than the kernel may move a board's figures: frequencies, boost, SMT, heat, load. Set where asked, looked at before and after.

A script prints ``key value`` lines; what a board has not is not there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kpatch_ci.model.board import Quiet

LOOK = r"""
cat_() { for f in $2; do [ -r "$f" ] && read -r v <"$f" && echo "$1 $f $v"; done; true; }
c=/sys/devices/system/cpu
cat_ governor "$c/cpufreq/policy*/scaling_governor"
cat_ khz "$c/cpufreq/policy*/scaling_cur_freq"
cat_ driver "$c/cpufreq/policy*/scaling_driver"
cat_ boost "$c/cpufreq/boost"
cat_ no_turbo "$c/intel_pstate/no_turbo"
cat_ smt "$c/smt/control"
cat_ millicelsius "/sys/class/thermal/thermal_zone*/temp"
cat_ throttled "$c/cpu*/thermal_throttle/core_throttle_count"
cat_ throttled "$c/cpu*/thermal_throttle/package_throttle_count"
cat_ cooling "/sys/class/thermal/cooling_device*/cur_state"
cat_ load /proc/loadavg
for k in model implementer part; do sed -n "s/^\(CPU \)*$k[^:]*: /cpu $k /p" /proc/cpuinfo; done
"""
"""POSIX shell. Devices stay away where the kernel has none of them."""
COLDEST, HOTTEST = -40.0, 150.0
"""Degrees Celsius that a sensor may show: one that is not wired shows -273, 255 or 2147483."""
_WHOLE = re.compile(r"-?[0-9]{1,12}", re.ASCII)


def set_script(quiet: Quiet) -> str:
    """Script that sets what the machine file asks for; prints ``failed WHAT`` for what could not be set."""
    lines = ["c=/sys/devices/system/cpu"]
    if quiet.governor:
        lines.append(
            f"n=0; for g in $c/cpufreq/policy*/scaling_governor; do [ -e $g ] || continue; n=1; echo {quiet.governor} >$g || "
            f'echo "failed governor {quiet.governor}: $g"; done; [ $n = 1 ] || echo "failed governor {quiet.governor}: no cpufreq"'
        )
    if quiet.boost is not None:
        on, off = int(quiet.boost), int(not quiet.boost)
        lines.append(
            f"if [ -e $c/intel_pstate/no_turbo ]; then echo {off} >$c/intel_pstate/no_turbo; "
            f"elif [ -e $c/cpufreq/boost ]; then echo {on} >$c/cpufreq/boost; else false; fi || echo 'failed boost: no switch'"
        )
    if quiet.smt is not None:
        word = "on" if quiet.smt else "off"
        lines.append(f"echo {word} >$c/smt/control || echo 'failed smt {word}: no switch'")
    return f"({'; '.join(lines)}) 2>/dev/null; true"


def read_look(text: str) -> dict[str, Any]:
    """What LOOK printed, as a report keeps it: highest temperature in degrees Celsius, throttle counts summed up."""
    found: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        words = line.split(" ", 2)
        if len(words) == 3:
            found.setdefault(words[0], {})[words[1]] = words[2].strip()
    look: dict[str, Any] = {}
    for key in ("governor", "driver", "khz", "cooling"):
        if key in found:
            look[key] = {_short(path): value for path, value in found[key].items()}
    for key in ("boost", "smt"):
        look |= {key: next(iter(found[key].values()))} if key in found else {}
    if "no_turbo" in found:
        look["boost"] = "0" if next(iter(found["no_turbo"].values())) == "1" else "1"
    cpu = found.get("cpu", {})
    if cpu:
        look["cpu"] = cpu.get("model") or f"implementer {cpu.get('implementer')} part {cpu.get('part')}"
    heat = [celsius for n in _numbers(found, "millicelsius") if COLDEST <= (celsius := n / 1000) <= HOTTEST]
    look |= {"celsius": max(heat)} if heat else {}
    counts = [n for n in _numbers(found, "throttled") if n >= 0]
    look |= {"throttled": sum(counts)} if counts else {}
    load = [m for v in found.get("load", {}).values() if (m := re.match(r"[0-9]{1,6}\.[0-9]{1,6}\b", v, re.ASCII))]
    look |= {"load": float(load[0][0])} if load else {}
    return look


def _numbers(found: Mapping[str, Mapping[str, str]], key: str) -> list[int]:
    """Those that are numbers: a sensor may show anything."""
    return [int(value) for value in found.get(key, {}).values() if _WHOLE.fullmatch(value)]


def _short(path: str) -> str:
    return path.rstrip("/").rpartition("/")[0].rpartition("/")[2] or path


def failures(text: str) -> tuple[str, ...]:
    """What could not be set."""
    return tuple(line.removeprefix("failed ") for line in text.splitlines() if line.startswith("failed "))


def unwatched(look: Mapping[str, Any], quiet: Quiet) -> tuple[str, ...]:
    """What is to be watched and cannot be seen."""
    if quiet.max_celsius is None or "celsius" in look:
        return ()
    return (f"no sensor shows a temperature, and {quiet.max_celsius:.0f} degrees Celsius are the limit",)


def too_hot(look: Mapping[str, Any], quiet: Quiet) -> bool:
    """Whether a run may not begin yet."""
    return quiet.max_celsius is not None and look.get("celsius", 0.0) > quiet.max_celsius


def disturbed(before: Mapping[str, Any], after: Mapping[str, Any], quiet: Quiet) -> str | None:
    """Why a run does not count, where the board slowed itself down meanwhile, or got too hot."""
    more = after.get("throttled", 0) - before.get("throttled", after.get("throttled", 0))
    if more > 0:
        return f"the board throttled {more} times while it ran ({after.get('celsius', '?')} degrees Celsius)"
    if too_hot(after, quiet):
        return f"the board was at {after['celsius']:.0f} degrees Celsius after it, and {quiet.max_celsius:.0f} is its limit"
    if before.get("governor") != after.get("governor"):
        return f"its governor changed while it ran: {before.get('governor')} before, {after.get('governor')} after"
    return None
