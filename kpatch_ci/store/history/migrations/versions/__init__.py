# SPDX-License-Identifier: GPL-2.0-or-later
"""In order of their revision ids. The newest one's id is schema.HEAD."""
