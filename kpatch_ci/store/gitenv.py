# SPDX-License-Identifier: GPL-2.0-or-later
"""Environments in which git has nobody's settings: for kernel trees and for series, neither of which may know the other."""

from __future__ import annotations

import os

ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""No configuration but the repository's own, no question, no translation."""
ISOLATED = {
    **ALONE,
    # Repositories of other users are read too (a bind mount in a CI container): objects only, no hook ever runs.
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}
