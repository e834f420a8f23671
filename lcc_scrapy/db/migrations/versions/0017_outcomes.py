"""The last outcome of a URL is found by the URL, and holds what it takes to fetch it again.

Outcomes that are there keep their key only; the errors of a provider are not looked up by URL any more.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0017"
down_revision = "0016"

_KNOWN = sa.text("furlhash IS NOT NULL")
_EMPTY = sa.text("''")


def _text(width: int, charset: str, collation: str) -> sa.types.TypeEngine[str]:
    exact = mysql.VARCHAR(width, charset=charset, collation=collation)
    return sa.String(width).with_variant(exact, "mysql", "mariadb")


_URL = _text(2048, "utf8mb4", "utf8mb4_bin")
_LONG = sa.Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)


def upgrade() -> None:
    """Move the hashes of names from the errors to the outcomes."""
    state = sa.Column(
        "state", _text(12, "ascii", "ascii_bin"), nullable=False, server_default=sa.text("'failed'")
    )
    mimetype = sa.Column("mimetype", _text(127, "ascii", "ascii_bin"), nullable=False, server_default=_EMPTY)
    op.add_column("outcomes", state)
    op.add_column("outcomes", sa.Column("curl", _URL, nullable=False, server_default=_EMPTY))
    op.add_column("outcomes", mimetype)
    op.add_column("outcomes", sa.Column("furl", _URL, nullable=False, server_default=_EMPTY))
    op.add_column("outcomes", sa.Column("submitted", _LONG, nullable=True))
    op.create_index("outcomes_state", "outcomes", ["pid", "state", "at", "urlkey"])
    _move_hashes("urlerrors", "outcomes")


def downgrade() -> None:
    """Move them back: errors that are there are not found by URL; drop the rest."""
    _move_hashes("outcomes", "urlerrors")
    op.drop_index("outcomes_state", "outcomes")
    for name in ("submitted", "furl", "mimetype", "curl", "state"):
        op.drop_column("outcomes", name)


def _move_hashes(source: str, target: str) -> None:
    for name in ("curlhash", "furlhash"):
        op.drop_index(f"{source}_{name}", source)
        op.drop_column(source, name)
    op.add_column(target, sa.Column("curlhash", sa.BigInteger(), nullable=False, server_default=sa.text("0")))
    op.add_column(target, sa.Column("furlhash", sa.BigInteger(), nullable=True))
    op.create_index(f"{target}_curlhash", target, ["curlhash"])
    op.create_index(f"{target}_furlhash", target, ["furlhash"], sqlite_where=_KNOWN, postgresql_where=_KNOWN)
