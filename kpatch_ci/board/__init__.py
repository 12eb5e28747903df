# SPDX-License-Identifier: GPL-2.0-or-later
"""Boards: real machines that are reached over SSH, started with the kernel under test, and brought back (docs/boards.md)."""
