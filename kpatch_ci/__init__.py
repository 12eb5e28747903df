# SPDX-License-Identifier: GPL-2.0-or-later
"""kpatch-ci: mails in, verdict out."""

__version__ = "0.1.0"
