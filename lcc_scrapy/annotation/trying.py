"""A test message to one recipient, at once: is its address right, and does it verify the signature?"""

import json

from lcc_scrapy.annotation.alert_texts import Written
from lcc_scrapy.annotation.couriers import Courier, Message
from lcc_scrapy.domain.acis import Recipient
from lcc_scrapy.domain.alerts import Format

_TITLE = "Test of alerts of a Local Content Cache"


async def send_test(courier: Courier, recipient: Recipient, lcc_id: str, now: int) -> None:
    """Send a test message; raises ``TellLater`` or ``TellNever``. ``now`` in epoch seconds."""
    name = f"test-{now}-{recipient.recipientid}.{lcc_id}"
    await courier.tell(Message(recipient, name, _written(recipient)), now)


def _written(recipient: Recipient) -> Written:
    text = f"Alerts of {recipient.owner} reach this address.\n"
    body = {
        Format.HTML: f'<!doctype html><html lang="en"><title>{_TITLE}</title><p>{_TITLE}.</p></html>',
        Format.TEXT: text,
        Format.XML: '<?xml version="1.0" encoding="utf-8"?>\n<acis/>\n',
        Format.JSON: json.dumps({"type": "test", "data": {"owner": recipient.owner, "acis": []}}),
    }[Format(recipient.format)]
    return Written(_TITLE, text, body)
