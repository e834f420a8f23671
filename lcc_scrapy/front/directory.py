"""The front's database: PMDB says which sub-LCC has a provider, FEDB how a sub-LCC is reached.

It is a database of its own, small and seldom written. Each method is one transaction; all block.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, func, inspect, select
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError

from lcc_scrapy.db.schema import is_missing_file
from lcc_scrapy.db.sql.store import make_engine, named_errors
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.front import FrontError, Load, MoveStep, Moving, SubLcc, SubState
from lcc_scrapy.domain.front_moves import Move
from lcc_scrapy.domain.tokens import Token
from lcc_scrapy.front import tables as t
from lcc_scrapy.front.given_pids import COUNTER, NONE_YET, GivenPids, portions

FORMAT = "1"


class Directory:
    """PMDB and FEDB. Raises ``StoreUnavailable`` when the database does not answer."""

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self._engine: Engine = make_engine(url)
        except (ConfigurationError, ArgumentError, NoSuchModuleError, ImportError) as error:
            raise ConfigurationError(f"LCC_FRONT_DATABASE_URL: {error}") from None
        self.given = GivenPids(self._engine)

    def close(self) -> None:
        """Give connections back."""
        self._engine.dispose()

    def create(self) -> None:
        """Make the tables, unless they are there."""
        with named_errors(), self._engine.begin() as connection:
            t.metadata.create_all(connection)
            there = {str(name) for name in connection.scalars(select(t.info.c.name))}
            for name, value in ((COUNTER, NONE_YET), ("format", FORMAT)):
                if name not in there:
                    connection.execute(t.info.insert().values(name=name, value=value))

    def check(self) -> None:
        """Raise ``ConfigurationError`` for a database that is not one of a front, or of another version."""
        if is_missing_file(self._url):
            raise ConfigurationError("there is no front yet: run `lcc front init`")
        try:
            with named_errors(), self._engine.connect() as connection:
                if not all(inspect(connection).has_table(one.name) for one in (t.info, t.moving, t.given)):
                    raise ConfigurationError("LCC_FRONT_DATABASE_URL: run `lcc front init` first")
                found = {row.name: row.value for row in connection.execute(t.info.select())}
        except DatabaseError as error:
            raise ConfigurationError(f"LCC_FRONT_DATABASE_URL: {error.orig}") from None
        if not {COUNTER, "format"} <= found.keys():
            raise ConfigurationError("LCC_FRONT_DATABASE_URL: run `lcc front init` first")
        if found["format"] != FORMAT:
            what = f"the front's database has format {found['format']}"
            raise ConfigurationError(f"{what}, this program reads {FORMAT}")

    # --- FEDB ------------------------------------------------------------------------------------

    def add(self, sub: SubLcc) -> None:
        """Add a sub-LCC; raises ``FrontError`` when its name is taken."""
        try:
            with named_errors(), self._engine.begin() as connection:
                connection.execute(t.fedb.insert().values(**asdict(sub)))
        except IntegrityError:
            raise FrontError(f"there is a sub-LCC {sub.name} already: `lcc front set` changes it") from None

    def change(self, sub: SubLcc) -> None:
        """Replace what is known of a sub-LCC."""
        with named_errors(), self._engine.begin() as connection:
            _known(connection, sub.name)
            connection.execute(t.fedb.update().where(t.fedb.c.name == sub.name).values(**asdict(sub)))

    def remove(self, name: str) -> None:
        """Forget a sub-LCC; raises ``FrontError`` while it has providers."""
        with named_errors(), self._engine.begin() as connection:
            _known(connection, name, lock=True)
            pids = _count(connection, name)
            if pids:
                raise FrontError(f"sub-LCC {name} has providers ({pids}): they need another one first")
            concerned = (t.moving.c.source == name) | (t.moving.c.target == name)
            if connection.execute(t.moving.select().where(concerned)).first():
                raise FrontError(f"sub-LCC {name} has a provider that moves: let `lcc front move` end first")
            connection.execute(t.fedb.delete().where(t.fedb.c.name == name))

    def subs(self) -> list[SubLcc]:
        """Return all sub-LCCs by name."""
        with named_errors(), self._engine.connect() as connection:
            return [
                _sub(row) for row in connection.execute(t.fedb.select().order_by(t.fedb.c.name)).mappings()
            ]

    def sub(self, name: str) -> SubLcc:
        """Return one by its name; raises ``FrontError``."""
        with named_errors(), self._engine.connect() as connection:
            return _known(connection, name)

    # --- PMDB ------------------------------------------------------------------------------------

    def sub_of(self, pid: int) -> SubLcc | None:
        """Return the sub-LCC of a provider, None when the provider is not known."""
        with named_errors(), self._engine.connect() as connection:
            of_it = t.fedb.select().join(t.pmdb, t.pmdb.c.sub == t.fedb.c.name).where(t.pmdb.c.pid == pid)
            row = connection.execute(of_it).mappings().first()
            return None if row is None else _sub(row)

    def assigned(self, pids: Sequence[int]) -> dict[int, str]:
        """Return the names of the sub-LCCs of those among these providers that are known."""
        found: dict[int, str] = {}
        with named_errors(), self._engine.connect() as connection:
            for some in portions(pids):
                these = t.pmdb.select().where(t.pmdb.c.pid.in_(some))
                found |= {row.pid: row.sub for row in connection.execute(these)}
        return found

    def route(self, pid: int | None) -> SubLcc | None:
        """Return the sub-LCC that a login goes to, None when there are none at all.

        The first one refuses ids that nobody has: with its own words, its own throttle, at its own price.
        While a provider moves, nobody may take its sets: that is ``StoreUnavailable``.
        """
        if pid is not None and (moving := self.moving(pid)) and moving.step != MoveStep.REMOVE:
            raise StoreUnavailable(f"provider {pid} moves to sub-LCC {moving.target}")
        sub = self.sub_of(pid) if pid is not None else None
        return sub or next(iter(self.subs()), None)

    def assign(self, pid: int, name: str) -> None:
        """Give a provider to a sub-LCC; raises ``FrontError`` when one has it already."""
        try:
            with named_errors(), self._engine.begin() as connection:
                _known(connection, name, lock=True)
                connection.execute(t.pmdb.insert().values(pid=pid, sub=name))
        except IntegrityError:
            raise FrontError(f"provider {pid} is assigned already: `lcc front show {pid}`") from None

    def assign_many(self, names: Mapping[int, str]) -> None:
        """Give providers to sub-LCCs, all or none; raises ``FrontError`` when a sub-LCC has one already."""
        rows = [{"pid": pid, "sub": name} for pid, name in names.items()]
        if not rows:
            return
        try:
            with named_errors(), self._engine.begin() as connection:
                for name in sorted(set(names.values())):
                    _known(connection, name, lock=True)
                connection.execute(t.pmdb.insert(), rows)
        except IntegrityError:
            raise FrontError("one of these providers was assigned meanwhile: run it again") from None

    def withdraw(self, pid: int) -> None:
        """Forget a provider; raises ``FrontError`` when it is not known."""
        if self.moving(pid):
            raise FrontError(f"provider {pid} moves: run `lcc front move` to its end, or with --give-up")
        with named_errors(), self._engine.begin() as connection:
            if not connection.execute(t.pmdb.delete().where(t.pmdb.c.pid == pid)).rowcount:
                raise FrontError(f"provider {pid} is not assigned to any sub-LCC")
            connection.execute(t.given.delete().where(t.given.c.pid == pid))

    def providers(self) -> dict[str, int]:
        """Return how many providers each sub-LCC has, by its name."""
        counts = select(t.pmdb.c.sub, func.count()).group_by(t.pmdb.c.sub)
        with named_errors(), self._engine.connect() as connection:
            return {str(name): int(count) for name, count in connection.execute(counts)}

    def load(self, urls: Mapping[str, int]) -> Load:
        """Return how full sub-LCCs are that have these documents and waiting URLs."""
        return Load(urls, self.providers(), self.given.counts())

    # --- moves (``domain/front_moves.py``) ---------------------------------------------------------

    def moves(self, after: int) -> list[Move]:
        """Return the moves of providers behind a number, by number."""
        query = t.moves.select().where(t.moves.c.number > after).order_by(t.moves.c.number)
        with named_errors(), self._engine.connect() as connection:
            return [Move(**row) for row in connection.execute(query).mappings()]

    def newest_move(self) -> int:
        """Return the number of the newest move, 0 = there was none."""
        with named_errors(), self._engine.connect() as connection:
            return connection.scalar(select(func.max(t.moves.c.number))) or 0

    def oldest_open_move(self) -> int:
        """Return the number of the first move that still goes on, 0 = none does."""
        query = select(func.min(t.moves.c.number)).where(t.moves.c.target_seq.is_(None))
        with named_errors(), self._engine.connect() as connection:
            return connection.scalar(query) or 0

    def put_move(self, move: Move) -> None:
        """Note a move, or how far it is."""
        with named_errors(), self._engine.begin() as connection:
            _put_move(connection, move)

    def moving(self, pid: int) -> Moving | None:
        """Return how far the move of a provider is, None when it does not move."""
        with named_errors(), self._engine.connect() as connection:
            row = connection.execute(t.moving.select().where(t.moving.c.pid == pid)).mappings().first()
            return None if row is None else _moving_of(row)

    def all_moving(self, source: str, target: str) -> list[Moving]:
        """Return the moves from one sub-LCC to another that have begun, by provider."""
        these = (t.moving.c.source == source) & (t.moving.c.target == target)
        query = t.moving.select().where(these).order_by(t.moving.c.pid)
        with named_errors(), self._engine.connect() as connection:
            return [_moving_of(row) for row in connection.execute(query).mappings()]

    def hold(self, moving: Moving) -> None:
        """Begin a move: from now on the front passes nobody on. Raises ``FrontError`` if one has begun."""
        try:
            with named_errors(), self._engine.begin() as connection:
                _known(connection, moving.target, lock=True)
                connection.execute(t.moving.insert().values(**asdict(moving)))
        except IntegrityError:
            raise FrontError(f"provider {moving.pid} moves already") from None

    def copying(self, moving: Moving, source: str, target: str, source_seq: int) -> Moving:
        """Note that rows are copied from now on, between the LCCs with these ids; returns it with its number.

        Nothing of the provider changes in the source any more, of which ``source_seq`` is the newest change.
        A move that was begun is returned as it is. Raises ``FrontError`` for one that was given up.
        """
        with named_errors(), self._engine.begin() as connection:
            _lock_moves(connection)
            known = (
                connection.execute(t.moving.select().where(t.moving.c.pid == moving.pid)).mappings().first()
            )
            if known is None:
                raise FrontError(f"the move of provider {moving.pid} was given up")
            if known["step"] != MoveStep.HOLD:
                return _moving_of(known)
            number = (connection.scalar(select(func.max(t.moves.c.number))) or 0) + 1
            _put_move(connection, Move(number, moving.pid, source, target, source_seq))
            return _put_moving(connection, replace(moving, step=MoveStep.COPY, number=number))

    def flip(self, moving: Moving) -> Moving:
        """Give the provider to the target: the front passes it on to there from now on."""
        with named_errors(), self._engine.begin() as connection:
            mine = t.pmdb.c.pid == moving.pid
            connection.execute(t.pmdb.update().where(mine).values(sub=moving.target))
            return _put_moving(connection, replace(moving, step=MoveStep.REMOVE))

    def end_move(self, moving: Moving, target_seq: int) -> None:
        """Note that a move is over: nothing of the provider is left in the source."""
        with named_errors(), self._engine.begin() as connection:
            over = t.moves.update().where(t.moves.c.number == moving.number).values(target_seq=target_seq)
            connection.execute(over)
            connection.execute(t.moving.delete().where(t.moving.c.pid == moving.pid))

    def give_up_move(self, pid: int) -> None:
        """Forget a move of which nothing was copied."""
        with named_errors(), self._engine.begin() as connection:
            begun = (t.moving.c.pid == pid) & (t.moving.c.step == MoveStep.HOLD)
            if not connection.execute(t.moving.delete().where(begun)).rowcount:
                raise FrontError(f"provider {pid} has no move that could be given up")

    # --- tokens of content users -----------------------------------------------------------------

    def find_token(self, digest: str) -> Token | None:
        """Return what is known of a token."""
        query = t.tokens.select().where(t.tokens.c.digest == digest)
        with named_errors(), self._engine.connect() as connection:
            row = connection.execute(query).mappings().first()
            return None if row is None else Token(**row)

    def add_token(self, token: Token) -> None:
        """Let a token be known."""
        with named_errors(), self._engine.begin() as connection:
            connection.execute(t.tokens.insert().values(**asdict(token)))

    def note_token(self, digest: str, used: int) -> None:
        """Keep when a token was used."""
        with named_errors(), self._engine.begin() as connection:
            connection.execute(t.tokens.update().where(t.tokens.c.digest == digest).values(used=used))

    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        query = t.tokens.select().order_by(t.tokens.c.created, t.tokens.c.digest)
        with named_errors(), self._engine.connect() as connection:
            return [Token(**row) for row in connection.execute(query).mappings()]

    def drop_token(self, digest: str) -> None:
        """Forget a token."""
        with named_errors(), self._engine.begin() as connection:
            connection.execute(t.tokens.delete().where(t.tokens.c.digest == digest))


def _count(connection: Connection, name: str) -> int:
    return connection.scalar(select(func.count()).select_from(t.pmdb).where(t.pmdb.c.sub == name)) or 0


def _moving_of(row: RowMapping) -> Moving:
    return Moving(**{**row, "step": MoveStep(row["step"])})


def _lock_moves(connection: Connection) -> None:
    """Let moves get their numbers one after the other, in the order of their commits."""
    connection.execute(t.info.update().where(t.info.c.name == "format").values(value=FORMAT))


def _put_move(connection: Connection, move: Move) -> None:
    connection.execute(t.moves.delete().where(t.moves.c.number == move.number))
    connection.execute(t.moves.insert().values(**asdict(move)))


def _put_moving(connection: Connection, moving: Moving) -> Moving:
    connection.execute(t.moving.update().where(t.moving.c.pid == moving.pid).values(**asdict(moving)))
    return moving


def _known(connection: Connection, name: str, *, lock: bool = False) -> SubLcc:
    """Return a sub-LCC; with ``lock``, whoever gives it providers or removes it waits for the others."""
    asked = t.fedb.select().where(t.fedb.c.name == name)
    row = connection.execute(asked.with_for_update() if lock else asked).mappings().first()
    if row is None:
        raise FrontError(f"there is no sub-LCC {name}: `lcc front list` shows them")
    return _sub(row)


def _sub(row: RowMapping) -> SubLcc:
    values: dict[str, Any] = {one.name: row[one.name] for one in fields(SubLcc)}
    return SubLcc(**{**values, "state": SubState(values["state"])})
