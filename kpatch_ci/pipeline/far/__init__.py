# SPDX-License-Identifier: GPL-2.0-or-later
"""Places that are other machines: what is said over a connection, and what stands at its other end."""
