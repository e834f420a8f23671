"""What one transaction can do: verbs over rows, no rules. Either all of a transaction happens or nothing."""

from contextlib import AbstractContextManager
from typing import Protocol

from lcc_scrapy.db.sql.aci_verbs import AciVerbs
from lcc_scrapy.db.sql.alert_verbs import AlertVerbs
from lcc_scrapy.db.sql.cache_verbs import CacheVerbs
from lcc_scrapy.db.sql.irrelevant_verbs import IrrelevantVerbs
from lcc_scrapy.db.sql.link_verbs import LinkVerbs
from lcc_scrapy.db.sql.login_verbs import LoginVerbs
from lcc_scrapy.db.sql.miss_verbs import MissVerbs
from lcc_scrapy.db.sql.move_verbs import MoveVerbs
from lcc_scrapy.db.sql.owner_verbs import OwnerVerbs
from lcc_scrapy.db.sql.people_verbs import PeopleVerbs
from lcc_scrapy.db.sql.provider_verbs import ProviderVerbs
from lcc_scrapy.db.sql.queue_verbs import QueueVerbs
from lcc_scrapy.db.sql.spider_verbs import SpiderVerbs
from lcc_scrapy.db.sql.turn_verbs import TurnVerbs
from lcc_scrapy.db.sql.urd_verbs import UrdVerbs
from lcc_scrapy.db.sql.user_verbs import UserVerbs


class Tx(
    ProviderVerbs,
    LoginVerbs,
    QueueVerbs,
    TurnVerbs,
    CacheVerbs,
    SpiderVerbs,
    LinkVerbs,
    IrrelevantVerbs,
    OwnerVerbs,
    MissVerbs,
    MoveVerbs,
    UserVerbs,
    PeopleVerbs,
    UrdVerbs,
    AciVerbs,
    AlertVerbs,
):
    """A running transaction. Sequences come back in the order the verb names."""


class Store(Protocol):
    """A place that keeps rows. Blocking; call it from one thread."""

    def begin(self) -> AbstractContextManager[Tx]:
        """Open a writing transaction; commits at the end of the block, rolls back on an error.

        Raises ``StoreUnavailable`` when the database does not answer or a commit's outcome is unknown.
        """

    def read(self) -> AbstractContextManager[Tx]:
        """Open a short reading transaction that never keeps a writer waiting for long."""

    def snapshot(self) -> AbstractContextManager[Tx]:
        """Open a reading transaction, all of whose answers are of one moment; it locks nothing."""

    def close(self) -> None:
        """Give connections back."""
