# SPDX-License-Identifier: GPL-2.0-or-later
"""Boots and replicates on a cluster of dask's (docs/cluster.md).

Every worker is a place of its own: a guest's replicates go where it was booted.
"""
