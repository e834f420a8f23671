"""``/v1/recipients``: how the owner of a token is told. The label of the token is the owner's name."""

from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from lcc_scrapy.annotation.recipients import Recipients, Wanted, as_told
from lcc_scrapy.domain.acis import Channel
from lcc_scrapy.domain.roots import URL_MAX
from lcc_scrapy.web.access import Owner, TheLcc
from lcc_scrapy.web.parameters import NothingElse
from lcc_scrapy.web.problems import told
from lcc_scrapy.web.rows import as_json

Id = Annotated[int, Path(ge=1, le=2**63 - 1, description="The number of a recipient.")]
_Address = Annotated[str, Field(max_length=URL_MAX, description="A mail address, or an https URL.")]
_Form = Literal["html", "text", "xml", "json"]


class NewRecipient(BaseModel):
    """Where alerts are to go. `digest`: everything waits for the daily digest."""

    model_config = ConfigDict(extra="forbid")

    channel: Literal["mail", "webhook"]
    address: _Address
    format: _Form | None = None
    digest: bool = False


class RecipientChange(BaseModel):
    """What is to be different; the rest stays. `new_secret`: make another secret for a webhook."""

    model_config = ConfigDict(extra="forbid")

    address: _Address | None = None
    format: _Form | None = None
    digest: bool | None = None
    off: bool | None = None
    new_secret: bool = False


class RecipientModel(BaseModel):
    """A recipient. `refused` says why it gets nothing, "" = it is not refused; `created` in epoch seconds."""

    id: int
    owner: str
    channel: str
    address: str
    format: str
    digest: bool
    off: bool
    created: int
    refused: str
    secret: str | None = Field(None, description="What signs calls; told only when it was just made.")


class RecipientsModel(BaseModel):
    """The recipients of an owner."""

    recipients: list[RecipientModel]


def make_router(recipients: Recipients) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1/recipients", tags=["annotation"])

    @router.get("", response_model=RecipientsModel, responses=told())
    def all_recipients(token: Owner, _: NothingElse) -> Response:
        """How this token's owner is told."""
        return as_json({"recipients": [as_told(one) for one in recipients.of(token.label)]})

    @router.post("", status_code=201, response_model=RecipientModel, responses=told(400, 409, 413))
    def add(lcc: TheLcc, token: Owner, wanted: NewRecipient) -> Response:
        """Add a recipient. The answer has the secret of a webhook, which is not told again."""
        said = Wanted(wanted.address, wanted.format, wanted.digest)
        made = recipients.add(token.label, Channel(wanted.channel), said, int(lcc.now()))
        where = f"/v1/recipients/{made.recipientid}"
        secret = {"secret": made.secret} if made.secret else {}
        return as_json({**as_told(made), **secret}, HTTPStatus.CREATED, Location=where)

    @router.get("/{recipientid}", response_model=RecipientModel, responses=told(404))
    def recipient(token: Owner, recipientid: Id) -> Response:
        """One recipient."""
        return as_json(as_told(recipients.get(recipientid, token.label)))

    @router.patch("/{recipientid}", response_model=RecipientModel, responses=told(400, 404, 413))
    def change(token: Owner, recipientid: Id, wanted: RecipientChange) -> Response:
        """Change a recipient. Another address, or `off` = false, makes good that it was refused."""
        changed = recipients.change(recipientid, Wanted(**wanted.model_dump()), token.label)
        secret = {"secret": changed.secret} if wanted.new_secret else {}
        return as_json({**as_told(changed), **secret})

    @router.delete("/{recipientid}", status_code=204, responses=told(404))
    def remove(token: Owner, recipientid: Id) -> Response:
        """Remove a recipient, and all that waits for it."""
        recipients.remove(recipientid, token.label)
        return Response(status_code=HTTPStatus.NO_CONTENT)

    return router
