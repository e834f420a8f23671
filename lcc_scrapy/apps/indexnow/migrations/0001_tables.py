"""Keys of sites that submit by IndexNow, and the URLs that wait for their check or for the queue.

Databases that were made when the core had these tables have them already.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None


def _exact(width: int, charset: str) -> sa.types.TypeEngine[str]:
    collation = {"ascii": "ascii_bin", "utf8mb4": "utf8mb4_bin"}[charset]
    theirs = mysql.VARCHAR(width, charset=charset, collation=collation)
    return sa.String(width).with_variant(theirs, "mysql", "mariadb")


_LONG = sa.Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
)
_NUMBER = sa.BigInteger()


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "indexnow",
        sa.Column("digest", _exact(64, "ascii"), primary_key=True),
        sa.Column("site", _exact(270, "ascii"), nullable=False),
        sa.Column("keytext", _exact(128, "ascii"), nullable=False),
        sa.Column("location", _exact(2048, "utf8mb4"), nullable=False),
        sa.Column("state", _exact(8, "ascii"), nullable=False),
        sa.Column("since", _NUMBER, nullable=False),
        sa.Column("seen", _NUMBER, nullable=False),
        sa.Column("checked", _NUMBER, nullable=False),
        sa.Column("due", _NUMBER, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("reason", _exact(255, "utf8mb4"), nullable=False),
        sa.Column("accepted", _NUMBER, nullable=False),
        sa.Column("refused", _NUMBER, nullable=False),
        if_not_exists=True,
    )
    op.create_index("indexnow_site", "indexnow", ["site", "digest"], if_not_exists=True)
    op.create_index("indexnow_due", "indexnow", ["state", "due"], if_not_exists=True)
    op.create_table(
        "indexnowurls",
        sa.Column(
            "portionid",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("digest", _exact(64, "ascii"), nullable=False),
        sa.Column("site", _exact(270, "ascii"), nullable=False),
        sa.Column("at", _NUMBER, nullable=False),
        sa.Column("size", _NUMBER, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("urls", _LONG, nullable=False),
        if_not_exists=True,
    )
    op.create_index("ix_indexnowurls_digest", "indexnowurls", ["digest"], if_not_exists=True)
    op.create_index("indexnowurls_site", "indexnowurls", ["site", "size"], if_not_exists=True)


def downgrade() -> None:
    """Drop the tables; sites submit again what they change."""
    op.drop_table("indexnowurls")
    op.drop_table("indexnow")
