"""Where Alembic starts: it works on the connection, and inside the transaction, that the store hands over."""

from __future__ import annotations

from alembic import context

from dialometer.storage.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
