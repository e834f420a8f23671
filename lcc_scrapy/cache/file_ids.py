"""File ids: 64 bits, taken in blocks, never given twice (decision 3).

A block is noted in the database before any file is written under its ids, so that whoever starts after a kill
knows where files without rows may lie (decision 123).
"""

from collections.abc import Collection, Iterable, Sequence
from secrets import randbits

from lcc_scrapy.content.files import FOLDER
from lcc_scrapy.db.records import FileBlock
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.errors import StoreUnavailable
from lcc_scrapy.domain.queue import Outcome, Served, bodies_of

FILEID = "fileid"
"""The counter of file ids."""

BLOCK = FOLDER
"""Ids of a block, which ends where a folder does: so one folder is all that a block's files lie in."""

_TOKEN_BITS = 62


def new_token() -> int:
    """Return a number that names one process among all that ever held blocks."""
    return randbits(_TOKEN_BITS) + 1


def block_of(fileid: int) -> int:
    """Return the number of the block that an id belongs to."""
    return fileid // BLOCK


class BlocksLost(StoreUnavailable):
    """Another process took blocks of ours over: the next try has other ids."""

    def __init__(self, blocks: Iterable[int]) -> None:
        self.blocks = tuple(blocks)
        super().__init__("another process took this one for dead, and its file ids")


def lock_blocks(tx: Tx, machineid: int, token: int, outcomes: Iterable[Outcome]) -> None:
    """Lock the blocks of these outcomes for the transaction, before it writes any of their files.

    So whoever locks a block knows that no file in it is about to get a row. ``token`` is that of the process
    whose blocks these are; raises ``BlocksLost`` when one of them is not any more.
    """
    fileids = [one.fileid for one in bodies_of(outcomes) if one.fileid]
    lock_blocks_of(tx, machineid, token, fileids)


def lock_blocks_of(tx: Tx, machineid: int, token: int, fileids: Iterable[int]) -> None:
    """Do the same for file ids."""
    wanted = set(map(block_of, fileids))
    there = tx.lock_blocks(machineid, wanted)
    lost = {number for number in wanted if number not in there or there[number].token != token}
    if lost:
        raise BlocksLost(sorted(lost))


def without_row(tx: Tx, machineid: int, fileids: Sequence[int]) -> list[int]:
    """Return those file ids that no document, version or list of files to be deleted has.

    In the order in which a file goes from one to the next, so that none is missed on its way.
    """
    known = set(tx.files_of(machineid, fileids))
    known |= tx.version_files(machineid, fileids)
    known |= tx.known_to_delete(machineid, fileids)
    return [fileid for fileid in fileids if fileid not in known]


class FileIds:
    """Hands out the file ids of one process, a worker of a machine.

    A block is taken in a transaction of its own, so that no rollback gives its ids to another process, which
    might have stored a document under one by then. It is forgotten when it is used up, unless a commit of its
    ids failed: then files without rows may lie there until the next start.
    """

    def __init__(self, store: Store, machineid: int, owner: str) -> None:
        self.owner = owner
        self.token = new_token()
        self._store = store
        self._machineid = machineid
        self._next = self._end = 0
        self._clean: dict[int, bool] = {}

    def number(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """Give served bodies their file ids (blocking). One that has an id keeps it: a settlement that is
        tried again writes the same files. Only an id of a block that was taken from us is given anew.
        """
        used = {block_of(one.fileid) for one in bodies_of(outcomes) if one.fileid}
        used &= self._clean.keys()
        return [self._numbered(one, used) if isinstance(one, Served) else one for one in outcomes]

    def _numbered(self, served: Served, used: set[int]) -> Served:
        rendition = served.rendition and self._numbered(served.rendition, used)
        fileid = served.fileid
        if not (fileid and block_of(fileid) in used):
            fileid = self.next(used)
        return Served(served.ticket, served.answer, served.body, fileid, rendition)

    def next(self, used: set[int]) -> int:
        """Return an id (blocking); ``used`` are the blocks of ids that have no rows yet."""
        if self._next == self._end:
            self._take_block(used)
        fileid, self._next = self._next, self._next + 1
        used.add(block_of(fileid))
        return fileid

    def _take_block(self, used: Collection[int]) -> None:
        """Take the ids up to the end of their folder, and forget blocks that are used up."""
        over = self._clean_blocks() - set(used)
        with self._store.begin() as tx:
            first = tx.take(FILEID, 1)
            rest = BLOCK - 1 - first % BLOCK
            tx.take(FILEID, rest)
            tx.put_block(FileBlock(self._machineid, block_of(first), first, self.owner, self.token))
            self._drop(tx, over)
        self._forget(over)
        self._clean[block_of(first)] = True
        self._next, self._end = first, first + rest + 1

    def doubt(self, outcomes: Iterable[Outcome], why: BaseException) -> None:
        """Note that a commit of these outcomes failed, and may have left files."""
        self.doubt_ids((one.fileid for one in bodies_of(outcomes)), why)

    def doubt_ids(self, fileids: Iterable[int], why: BaseException) -> None:
        """Do the same for file ids."""
        for number in set(map(block_of, fileids)) & self._clean.keys():
            self._clean[number] = False
        if isinstance(why, BlocksLost):
            self._forget(why.blocks)

    def release(self) -> None:
        """Forget all blocks in which every file has its row (blocking): nothing is to be settled any more."""
        over = self._clean_blocks()
        if over:
            with self._store.begin() as tx:
                self._drop(tx, over)
            self._forget(over)

    def _drop(self, tx: Tx, numbers: Collection[int]) -> None:
        there = tx.lock_blocks(self._machineid, numbers)
        tx.drop_blocks(self._machineid, [block for block, one in there.items() if one.token == self.token])

    def _clean_blocks(self) -> set[int]:
        return {number for number, clean in self._clean.items() if clean}

    def _forget(self, numbers: Collection[int]) -> None:
        for number in numbers:
            self._clean.pop(number, None)
        if block_of(self._next) in numbers:
            self._next = self._end
