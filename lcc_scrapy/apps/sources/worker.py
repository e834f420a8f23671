"""Sources in a crawl process."""

from lcc_scrapy.app.worker_parts import MakeWorkerPart, WorkerPort
from lcc_scrapy.apps.sources.opening import runner_of
from lcc_scrapy.apps.sources.runner import DueSources
from lcc_scrapy.kit.work import in_thread


def _due_sources(worker: WorkerPort) -> DueSources:
    """Return what runs sources in a crawl process."""
    settings = worker.settings
    runner = runner_of(
        worker.config,
        worker.store,
        in_thread(worker.thread),
        settings["USER_AGENT"],
        settings,
        credentials=worker.credentials,
        verify=worker.verifies,
    )
    runner.touched = worker.touched
    return DueSources(runner, worker.thread, worker.reactor, worker.config.poll, worker.is_short)


PART: MakeWorkerPart = _due_sources
