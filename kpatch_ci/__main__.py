# SPDX-License-Identifier: GPL-2.0-or-later
"""``python -m kpatch_ci``."""

import sys

from kpatch_ci.cli.main import main

sys.exit(main())
