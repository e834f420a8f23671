"""Mail in a crawl process."""

from lcc_scrapy.app.worker_parts import MakeWorkerPart, WorkerPort
from lcc_scrapy.mail.post import Post
from lcc_scrapy.ops.mailing import Mailing, post_of


def _mailing(worker: WorkerPort) -> Mailing:
    def made() -> Post | None:
        return post_of(worker.config, worker.store, worker.lcc_id, worker.owner)

    return Mailing(worker.own_thread("lcc-mail"), worker.reactor, made)


PART: MakeWorkerPart = _mailing
