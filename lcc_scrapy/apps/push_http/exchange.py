"""One request under way: its body goes to a conversation, and what that says becomes the answer."""

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.types import Receive, Send

from lcc_scrapy.apps.push_http.body_codings import Gzip, Plain, Undecodable
from lcc_scrapy.apps.push_http.request_transport import RequestTransport
from lcc_scrapy.apps.push_http.statuses import status_of
from lcc_scrapy.uns.protocol import UnsProtocol


class Exchange:
    """Carries bytes between a request and its conversation; decides nothing but the status.

    ``log_in`` are the headers of an answer with 401.
    """

    def __init__(
        self, conversation: UnsProtocol, coding: Plain | Gzip, answer_type: str, log_in: Mapping[str, str]
    ) -> None:
        self._conversation = conversation
        self._coding = coding
        self._answer_type = answer_type
        self._log_in = log_in
        self._transport = RequestTransport()
        self._told = asyncio.Event()
        self._is_read = False
        self._is_gone = False

    async def run(self, receive: Receive, send: Send) -> None:
        """Serve the request to its end."""
        self._conversation.makeConnection(self._transport)  # type: ignore[no-untyped-call]
        reading = asyncio.ensure_future(self._read(receive))
        answered = False
        try:
            await self._answer(send, reading)
            answered = not self._is_gone
            if reading.done():
                reading.result()
        finally:
            reading.cancel()
            self._transport.end(self._conversation, answered=answered)

    # --- the body ------------------------------------------------------------------------------------

    async def _read(self, receive: Receive) -> None:
        try:
            await self._read_body(receive)
        finally:
            if not self._is_read:  # nobody may wait for what will not come
                self._transport.abortConnection()

    async def _read_body(self, receive: Receive) -> None:
        more = True
        while more:
            await self._transport.readable.wait()
            if self._transport.said_all:
                await self._told.wait()  # before that, asking for more would tell an early client to go on
            message = await receive()
            if message["type"] == "http.disconnect":
                self._is_gone = True
                return
            await self._pass_on(message.get("body", b""))
            if self._transport.closed:
                return
            more = message.get("more_body", False)
        await self._finish()

    async def _pass_on(self, data: bytes) -> None:
        try:
            for piece in self._coding.pieces(data):
                await self._transport.readable.wait()
                self._conversation.dataReceived(piece)
        except Undecodable as error:
            self._conversation.break_off(str(error))

    async def _finish(self) -> None:
        """Everything has come."""
        self._is_read = True
        await self._transport.readable.wait()
        try:
            self._coding.finish()
        except Undecodable as error:
            self._conversation.break_off(str(error))
        self._conversation.readConnectionLost()

    # --- the answer ----------------------------------------------------------------------------------

    async def _answer(self, send: Send, reading: "asyncio.Future[None]") -> None:
        transport = self._transport
        await transport.decided.wait()
        if self._is_gone:
            return
        await send({"type": "http.response.start", "status": int(self._status()), "headers": self._headers()})
        while portion := await self._portion():
            await send({"type": "http.response.body", "body": portion, "more_body": True})
            transport.sent()
        self._told.set()
        await self._linger(reading)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _portion(self) -> bytes:
        """Return what to send next; nothing when all is sent."""
        while True:
            portion = self._transport.take()
            if portion or self._transport.said_all:
                return portion
            self._transport.news.clear()
            await self._transport.news.wait()

    def _status(self) -> HTTPStatus:
        if not self._transport.said_all:
            return HTTPStatus.OK
        if self._conversation.rejected is not None:
            return status_of(self._conversation.rejected.code)
        if self._transport.size:
            return HTTPStatus.OK
        # nothing was said to who said nothing, or the server stops at this moment
        return HTTPStatus.SERVICE_UNAVAILABLE if self._transport.aborted else HTTPStatus.UNAUTHORIZED

    def _headers(self) -> list[tuple[bytes, bytes]]:
        headers = {"content-type": self._answer_type}
        if self._transport.said_all:
            headers["content-length"] = str(self._transport.size)
        if self._conversation.rejected is not None and self._conversation.rejected.retry_after:
            headers["retry-after"] = str(self._conversation.rejected.retry_after)
        if self._status() is HTTPStatus.UNAUTHORIZED:
            headers |= self._log_in
        if not self._is_read:
            headers["connection"] = "close"
        return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]

    async def _linger(self, reading: "asyncio.Future[None]") -> None:
        """Let the rest of the body come, as long as the conversation permits: its sender reads afterwards."""
        while not (reading.done() or self._transport.closed):
            self._transport.news.clear()
            ended = asyncio.ensure_future(self._transport.news.wait())
            either: set[asyncio.Future[Any]] = {reading, ended}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
