"""Waiting URLs have a ``furlkey`` where spiders ask for it: its index leaves the others out."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_INDEX = "ix_qdb_furlkey"
_MARK = (
    "INSERT INTO scans (pid, seq, terms, since, at, pages, urls, rules, taken)"
    " SELECT DISTINCT pid, 0, '', 0, 0, 0, 0, '', 0 FROM spidered"
    " WHERE NOT EXISTS (SELECT 1 FROM scans WHERE scans.pid = spidered.pid)"
)
"""Who has a row in ``scans`` is spidered, and what arrives from there gets its ``furlkey``."""


def upgrade() -> None:
    """Make the index anew, and mark providers of whom spiders know URLs."""
    _make_index(sa.text("furlkey IS NOT NULL"))
    op.execute(_MARK)


def downgrade() -> None:
    """Make the index as it was; rows that came without a ``furlkey`` stay without."""
    _make_index(None)


def _make_index(where: "sa.TextClause | None") -> None:
    """Replace the index, but where the database knows none that leaves rows out."""
    if op.get_context().dialect.name in {"sqlite", "postgresql"}:
        op.drop_index(_INDEX, "qdb")
        op.create_index(_INDEX, "qdb", ["furlkey"], sqlite_where=where, postgresql_where=where)
