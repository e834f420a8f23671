"""A transaction on SQL: the verbs of ``db.tx.Tx`` as statements, by what they are about."""

from lcc_scrapy.db.sql.cache_verbs import CacheVerbs
from lcc_scrapy.db.sql.login_verbs import LoginVerbs
from lcc_scrapy.db.sql.miss_verbs import MissVerbs
from lcc_scrapy.db.sql.provider_verbs import ProviderVerbs
from lcc_scrapy.db.sql.queue_verbs import QueueVerbs
from lcc_scrapy.db.sql.spider_verbs import SpiderVerbs
from lcc_scrapy.db.sql.turn_verbs import TurnVerbs
from lcc_scrapy.db.sql.user_verbs import UserVerbs


class SqlTx(ProviderVerbs, LoginVerbs, QueueVerbs, TurnVerbs, CacheVerbs, SpiderVerbs, MissVerbs, UserVerbs):
    """See ``db.tx.Tx`` for what each verb promises."""
