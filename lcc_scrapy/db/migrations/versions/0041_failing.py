"""An index for failed fetches of late: the list of providers by them reads no others."""

from alembic import op

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    """Make the index, which also serves what looked by ``begun`` alone."""
    op.create_index("fetchcounts_result", "fetchcounts", ["begun", "result"], if_not_exists=True)
    op.drop_index("fetchcounts_begun", "fetchcounts", if_exists=True)


def downgrade() -> None:
    """Make the index that there was before."""
    op.create_index("fetchcounts_begun", "fetchcounts", ["begun"], if_not_exists=True)
    op.drop_index("fetchcounts_result", "fetchcounts", if_exists=True)
