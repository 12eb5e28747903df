# SPDX-License-Identifier: GPL-2.0-or-later
"""The history database: every run, whole, in SQLite or PostgreSQL (docs/history.md).

A run arrives as plain data (result.json's content), never as a report's model. SQLAlchemy and alembic are imported by the
modules that use them, and those by verbs that need them: nothing here is loaded for `--help` or `check`.
"""
