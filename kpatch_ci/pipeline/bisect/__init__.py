# SPDX-License-Identifier: GPL-2.0-or-later
"""Bisection: git picks the commits, kernels are built, booted and measured as in a run, and a stated rule gives each its class."""
