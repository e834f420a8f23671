"""The front's database: PMDB says which sub-LCC has a provider, FEDB how a sub-LCC is reached.

It is a database of its own, small and seldom written. Each method is one transaction; all block.
"""

from dataclasses import asdict, fields, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Engine,
    MetaData,
    RowMapping,
    String,
    Table,
    func,
    inspect,
    select,
)
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError

from lcc_scrapy.db.schema import is_missing_file
from lcc_scrapy.db.sql.store import make_engine, named_errors
from lcc_scrapy.domain.errors import ConfigurationError, StoreUnavailable
from lcc_scrapy.domain.front import FrontError, MoveStep, Moving, SubLcc, SubState
from lcc_scrapy.domain.front_moves import Move
from lcc_scrapy.domain.tokens import LABEL_MAX, RESTRICTION_MAX, Token

FORMAT = "1"

_metadata = MetaData()
_TEXT = 255
_NAME = 64
_fedb = Table(
    "fedb",
    _metadata,
    Column("name", String(_NAME), primary_key=True),
    Column("uns", String(_TEXT), nullable=False),
    Column("lccid", String(_NAME), nullable=False),
    Column("web", String(_TEXT), nullable=False),
    Column("token_file", String(_TEXT), nullable=False),
    Column("database", String(_TEXT), nullable=False),
    Column("capacity", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
)
_pmdb = Table(
    "pmdb",
    _metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("sub", String(_NAME), nullable=False, index=True),
)
_moves = Table(
    "moves",
    _metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("pid", BigInteger, nullable=False),
    Column("source", String(_NAME), nullable=False),
    Column("target", String(_NAME), nullable=False),
    Column("source_seq", BigInteger, nullable=False),
    Column("target_seq", BigInteger),
)
_moving = Table(
    "moving",
    _metadata,
    Column("pid", BigInteger, primary_key=True, autoincrement=False),
    Column("source", String(_NAME), nullable=False),
    Column("target", String(_NAME), nullable=False),
    Column("state", String(16), nullable=False),
    Column("step", String(16), nullable=False),
    Column("number", BigInteger, nullable=False),
)
_tokens = Table(
    "tokens",
    _metadata,
    Column("digest", String(_NAME), primary_key=True),
    Column("label", String(LABEL_MAX), nullable=False),
    Column("scopes", String(_TEXT), nullable=False),
    Column("providers", String(RESTRICTION_MAX), nullable=False),
    Column("mimetypes", String(RESTRICTION_MAX), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("used", BigInteger, nullable=False),
)
_info = Table(
    "frontinfo",
    _metadata,
    Column("name", String(_NAME), primary_key=True),
    Column("value", String(_TEXT), nullable=False),
)


class Directory:
    """PMDB and FEDB. Raises ``StoreUnavailable`` when the database does not answer."""

    def __init__(self, url: str) -> None:
        self._url = url
        try:
            self._engine: Engine = make_engine(url)
        except (ArgumentError, NoSuchModuleError, ImportError) as error:
            raise ConfigurationError(f"LCC_FRONT_DATABASE_URL: {error}") from None

    def close(self) -> None:
        """Give connections back."""
        self._engine.dispose()

    def create(self) -> None:
        """Make the tables, unless they are there."""
        with named_errors(), self._engine.begin() as connection:
            _metadata.create_all(connection)
            if connection.scalar(select(_info.c.value).where(_info.c.name == "format")) is None:
                connection.execute(_info.insert().values(name="format", value=FORMAT))

    def check(self) -> None:
        """Raise ``ConfigurationError`` for a database that is not one of a front, or of another version."""
        if is_missing_file(self._url):
            raise ConfigurationError("there is no front yet: run `lcc front init`")
        try:
            with named_errors(), self._engine.connect() as connection:
                if not all(inspect(connection).has_table(one.name) for one in (_info, _moving)):
                    raise ConfigurationError("LCC_FRONT_DATABASE_URL: run `lcc front init` first")
                found = connection.scalar(select(_info.c.value).where(_info.c.name == "format"))
        except DatabaseError as error:
            raise ConfigurationError(f"LCC_FRONT_DATABASE_URL: {error.orig}") from None
        if found != FORMAT:
            raise ConfigurationError(f"the front's database has format {found}, this program reads {FORMAT}")

    # --- FEDB ------------------------------------------------------------------------------------

    def add(self, sub: SubLcc) -> None:
        """Add a sub-LCC; raises ``FrontError`` when its name is taken."""
        try:
            with named_errors(), self._engine.begin() as connection:
                connection.execute(_fedb.insert().values(**asdict(sub)))
        except IntegrityError:
            raise FrontError(f"there is a sub-LCC {sub.name} already: `lcc front set` changes it") from None

    def change(self, sub: SubLcc) -> None:
        """Replace what is known of a sub-LCC."""
        with named_errors(), self._engine.begin() as connection:
            _known(connection, sub.name)
            connection.execute(_fedb.update().where(_fedb.c.name == sub.name).values(**asdict(sub)))

    def remove(self, name: str) -> None:
        """Forget a sub-LCC; raises ``FrontError`` while it has providers."""
        with named_errors(), self._engine.begin() as connection:
            _known(connection, name, lock=True)
            pids = _count(connection, name)
            if pids:
                raise FrontError(f"sub-LCC {name} has providers ({pids}): they need another one first")
            concerned = (_moving.c.source == name) | (_moving.c.target == name)
            if connection.execute(_moving.select().where(concerned)).first():
                raise FrontError(f"sub-LCC {name} has a provider that moves: let `lcc front move` end first")
            connection.execute(_fedb.delete().where(_fedb.c.name == name))

    def subs(self) -> list[SubLcc]:
        """Return all sub-LCCs by name."""
        with named_errors(), self._engine.connect() as connection:
            return [_sub(row) for row in connection.execute(_fedb.select().order_by(_fedb.c.name)).mappings()]

    def sub(self, name: str) -> SubLcc:
        """Return one by its name; raises ``FrontError``."""
        with named_errors(), self._engine.connect() as connection:
            return _known(connection, name)

    # --- PMDB ------------------------------------------------------------------------------------

    def sub_of(self, pid: int) -> SubLcc | None:
        """Return the sub-LCC of a provider, None when the provider is not known."""
        with named_errors(), self._engine.connect() as connection:
            of_it = _fedb.select().join(_pmdb, _pmdb.c.sub == _fedb.c.name).where(_pmdb.c.pid == pid)
            row = connection.execute(of_it).mappings().first()
            return None if row is None else _sub(row)

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
                connection.execute(_pmdb.insert().values(pid=pid, sub=name))
        except IntegrityError:
            raise FrontError(f"provider {pid} is assigned already: `lcc front show {pid}`") from None

    def withdraw(self, pid: int) -> None:
        """Forget a provider; raises ``FrontError`` when it is not known."""
        if self.moving(pid):
            raise FrontError(f"provider {pid} moves: run `lcc front move` to its end, or with --give-up")
        with named_errors(), self._engine.begin() as connection:
            if not connection.execute(_pmdb.delete().where(_pmdb.c.pid == pid)).rowcount:
                raise FrontError(f"provider {pid} is not assigned to any sub-LCC")

    def providers(self) -> dict[str, int]:
        """Return how many providers each sub-LCC has, by its name."""
        counts = select(_pmdb.c.sub, func.count()).group_by(_pmdb.c.sub)
        with named_errors(), self._engine.connect() as connection:
            return {str(name): int(count) for name, count in connection.execute(counts)}

    # --- moves (``domain/front_moves.py``) ---------------------------------------------------------

    def moves(self, after: int) -> list[Move]:
        """Return the moves of providers behind a number, by number."""
        query = _moves.select().where(_moves.c.number > after).order_by(_moves.c.number)
        with named_errors(), self._engine.connect() as connection:
            return [Move(**row) for row in connection.execute(query).mappings()]

    def newest_move(self) -> int:
        """Return the number of the newest move, 0 = there was none."""
        with named_errors(), self._engine.connect() as connection:
            return connection.scalar(select(func.max(_moves.c.number))) or 0

    def oldest_open_move(self) -> int:
        """Return the number of the first move that still goes on, 0 = none does."""
        query = select(func.min(_moves.c.number)).where(_moves.c.target_seq.is_(None))
        with named_errors(), self._engine.connect() as connection:
            return connection.scalar(query) or 0

    def put_move(self, move: Move) -> None:
        """Note a move, or how far it is."""
        with named_errors(), self._engine.begin() as connection:
            _put_move(connection, move)

    def moving(self, pid: int) -> Moving | None:
        """Return how far the move of a provider is, None when it does not move."""
        with named_errors(), self._engine.connect() as connection:
            row = connection.execute(_moving.select().where(_moving.c.pid == pid)).mappings().first()
            return None if row is None else _moving_of(row)

    def all_moving(self, source: str, target: str) -> list[Moving]:
        """Return the moves from one sub-LCC to another that have begun, by provider."""
        these = (_moving.c.source == source) & (_moving.c.target == target)
        query = _moving.select().where(these).order_by(_moving.c.pid)
        with named_errors(), self._engine.connect() as connection:
            return [_moving_of(row) for row in connection.execute(query).mappings()]

    def hold(self, moving: Moving) -> None:
        """Begin a move: from now on the front passes nobody on. Raises ``FrontError`` if one has begun."""
        try:
            with named_errors(), self._engine.begin() as connection:
                _known(connection, moving.target, lock=True)
                connection.execute(_moving.insert().values(**asdict(moving)))
        except IntegrityError:
            raise FrontError(f"provider {moving.pid} moves already") from None

    def copying(self, moving: Moving, source: str, target: str, source_seq: int) -> Moving:
        """Note that rows are copied from now on, between the LCCs with these ids; returns it with its number.

        Nothing of the provider changes in the source any more, of which ``source_seq`` is the newest change.
        A move that was begun is returned as it is. Raises ``FrontError`` for one that was given up.
        """
        with named_errors(), self._engine.begin() as connection:
            _lock_moves(connection)
            known = connection.execute(_moving.select().where(_moving.c.pid == moving.pid)).mappings().first()
            if known is None:
                raise FrontError(f"the move of provider {moving.pid} was given up")
            if known["step"] != MoveStep.HOLD:
                return _moving_of(known)
            number = (connection.scalar(select(func.max(_moves.c.number))) or 0) + 1
            _put_move(connection, Move(number, moving.pid, source, target, source_seq))
            return _put_moving(connection, replace(moving, step=MoveStep.COPY, number=number))

    def flip(self, moving: Moving) -> Moving:
        """Give the provider to the target: the front passes it on to there from now on."""
        with named_errors(), self._engine.begin() as connection:
            mine = _pmdb.c.pid == moving.pid
            connection.execute(_pmdb.update().where(mine).values(sub=moving.target))
            return _put_moving(connection, replace(moving, step=MoveStep.REMOVE))

    def end_move(self, moving: Moving, target_seq: int) -> None:
        """Note that a move is over: nothing of the provider is left in the source."""
        with named_errors(), self._engine.begin() as connection:
            over = _moves.update().where(_moves.c.number == moving.number).values(target_seq=target_seq)
            connection.execute(over)
            connection.execute(_moving.delete().where(_moving.c.pid == moving.pid))

    def give_up_move(self, pid: int) -> None:
        """Forget a move of which nothing was copied."""
        with named_errors(), self._engine.begin() as connection:
            begun = (_moving.c.pid == pid) & (_moving.c.step == MoveStep.HOLD)
            if not connection.execute(_moving.delete().where(begun)).rowcount:
                raise FrontError(f"provider {pid} has no move that could be given up")

    # --- tokens of content users -----------------------------------------------------------------

    def find_token(self, digest: str) -> Token | None:
        """Return what is known of a token."""
        query = _tokens.select().where(_tokens.c.digest == digest)
        with named_errors(), self._engine.connect() as connection:
            row = connection.execute(query).mappings().first()
            return None if row is None else Token(**row)

    def add_token(self, token: Token) -> None:
        """Let a token be known."""
        with named_errors(), self._engine.begin() as connection:
            connection.execute(_tokens.insert().values(**asdict(token)))

    def note_token(self, digest: str, used: int) -> None:
        """Keep when a token was used."""
        with named_errors(), self._engine.begin() as connection:
            connection.execute(_tokens.update().where(_tokens.c.digest == digest).values(used=used))

    def tokens(self) -> list[Token]:
        """Return all tokens, oldest first."""
        query = _tokens.select().order_by(_tokens.c.created, _tokens.c.digest)
        with named_errors(), self._engine.connect() as connection:
            return [Token(**row) for row in connection.execute(query).mappings()]

    def drop_token(self, digest: str) -> None:
        """Forget a token."""
        with named_errors(), self._engine.begin() as connection:
            connection.execute(_tokens.delete().where(_tokens.c.digest == digest))


def _count(connection: Connection, name: str) -> int:
    return connection.scalar(select(func.count()).select_from(_pmdb).where(_pmdb.c.sub == name)) or 0


def _moving_of(row: RowMapping) -> Moving:
    return Moving(**{**row, "step": MoveStep(row["step"])})


def _lock_moves(connection: Connection) -> None:
    """Let moves get their numbers one after the other, in the order of their commits."""
    connection.execute(_info.update().where(_info.c.name == "format").values(value=FORMAT))


def _put_move(connection: Connection, move: Move) -> None:
    connection.execute(_moves.delete().where(_moves.c.number == move.number))
    connection.execute(_moves.insert().values(**asdict(move)))


def _put_moving(connection: Connection, moving: Moving) -> Moving:
    connection.execute(_moving.update().where(_moving.c.pid == moving.pid).values(**asdict(moving)))
    return moving


def _known(connection: Connection, name: str, *, lock: bool = False) -> SubLcc:
    """Return a sub-LCC; with ``lock``, whoever gives it providers or removes it waits for the others."""
    asked = _fedb.select().where(_fedb.c.name == name)
    row = connection.execute(asked.with_for_update() if lock else asked).mappings().first()
    if row is None:
        raise FrontError(f"there is no sub-LCC {name}: `lcc front list` shows them")
    return _sub(row)


def _sub(row: RowMapping) -> SubLcc:
    values: dict[str, Any] = {one.name: row[one.name] for one in fields(SubLcc)}
    return SubLcc(**{**values, "state": SubState(values["state"])})
