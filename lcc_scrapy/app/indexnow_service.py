"""The IndexNow service of an LCC, made of its settings."""

from lcc_scrapy.config.config import Config
from lcc_scrapy.db.tx import Store
from lcc_scrapy.domain.indexnow import OFF
from lcc_scrapy.domain.providers import Provider
from lcc_scrapy.indexnow.keys import Keys
from lcc_scrapy.indexnow.queueing import Queueing
from lcc_scrapy.indexnow.service import IndexNow
from lcc_scrapy.login.passwords import hash_made_up, made_up
from lcc_scrapy.machine.wake_file import WakeFile

NAME_MAX = 255


def make_indexnow(config: Config, store: Store) -> IndexNow | None:
    """Return the service, None where LCC_INDEXNOW is off."""
    rules = config.indexnow
    if rules.mode == OFF:
        return None

    def made(pid: int, root: str) -> Provider:
        """Return a provider with the defaults of `lcc provider add`, which nobody can log in as."""
        secret = hash_made_up(made_up())
        return Provider(pid, secret, name=f"IndexNow {root}"[:NAME_MAX], fullsetsallowed=config.fullsets)

    queueing = Queueing(store, config.policy, config.queue_max, WakeFile(config.data_dir).touch)
    return IndexNow(Keys(store, rules, made), queueing, rules)
