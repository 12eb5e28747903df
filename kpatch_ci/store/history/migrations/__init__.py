# SPDX-License-Identifier: GPL-2.0-or-later
"""alembic's scripts: one file a change of the schema, never edited once it was released."""
