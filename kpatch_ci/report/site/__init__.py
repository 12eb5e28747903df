# SPDX-License-Identifier: GPL-2.0-or-later
"""The static site of nightly runs, its feed and its mail: plain data in (data.py), files out (write.py)."""
