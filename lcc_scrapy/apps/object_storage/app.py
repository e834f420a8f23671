"""Object storage: how the core reaches it."""

from lcc_scrapy.runtime.apps import App

APP = App(
    "object_storage",
    "contents lie in S3, or a server that speaks like it",
    factories={"contents": {"s3": "lcc_scrapy.apps.object_storage.objects:CONTENTS"}},
    checks="lcc_scrapy.apps.object_storage.checks:CHECK",
)
