"""A provider moves from one LCC to another of the same kind; what is beside it costs nothing and stays."""

from collections import Counter
from contextlib import closing
from dataclasses import replace

import pytest
import sqlalchemy
from little_lcc import PID, LittleLcc, assert_books_balance, key, removal, update

from lcc_scrapy.cache.file_ids import FileIds
from lcc_scrapy.content.files import ContentFiles
from lcc_scrapy.db.sql.move_verbs import KEYS
from lcc_scrapy.db.sql.store import SqlStore
from lcc_scrapy.domain.cache import CachedUrl
from lcc_scrapy.domain.front import FrontError, MoveStep, SubLcc
from lcc_scrapy.domain.links import DocumentLink
from lcc_scrapy.domain.providers import State
from lcc_scrapy.domain.versions import Keep
from lcc_scrapy.feed.content import LocalContent
from lcc_scrapy.front import moved_documents, moving
from lcc_scrapy.front.directory import Directory
from lcc_scrapy.front.moved_documents import Files
from lcc_scrapy.front.moving import Mover, give_up
from tests.made_databases import upgrade

PAGES = [f"{number:03}" for number in range(12)]
BODY = b"x" * 1000
SOURCE, TARGET, STAYS = 1, 2, 8
