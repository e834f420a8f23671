"""A transaction on SQL: the verbs of ``storage.tx.Tx`` as statements, by what they are about."""

from lcc_scrapy.storage.sql.cache_verbs import CacheVerbs
from lcc_scrapy.storage.sql.login_verbs import LoginVerbs
from lcc_scrapy.storage.sql.miss_verbs import MissVerbs
from lcc_scrapy.storage.sql.provider_verbs import ProviderVerbs
from lcc_scrapy.storage.sql.queue_verbs import QueueVerbs
from lcc_scrapy.storage.sql.spider_verbs import SpiderVerbs
from lcc_scrapy.storage.sql.turn_verbs import TurnVerbs
from lcc_scrapy.storage.sql.user_verbs import UserVerbs


class SqlTx(ProviderVerbs, LoginVerbs, QueueVerbs, TurnVerbs, CacheVerbs, SpiderVerbs, MissVerbs, UserVerbs):
    """See ``storage.tx.Tx`` for what each verb promises."""
