# SPDX-License-Identifier: GPL-2.0-or-later
"""Run by alembic, with the connection that schema.py opened: its transaction holds the whole change, tables included."""

from alembic import context

from kpatch_ci.store.history.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
