"""The recipients of owners: added, changed and removed, by operators and by owners themselves. Blocking."""

from dataclasses import dataclass, replace

from lcc_scrapy.annotation.webhooks import new_secret
from lcc_scrapy.db.tx import Store, Tx
from lcc_scrapy.domain.acis import Channel, Recipient
from lcc_scrapy.domain.alerts import BadRecipient, NoSuchRecipient, TooManyRecipients, address_for, format_for
from lcc_scrapy.domain.directives import checked_owner
from lcc_scrapy.mail.unsubscribing import Subscribers


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is said of a recipient; None = as it is, or, of a new one, as usual. ``new_secret``: make one."""

    address: str | None = None
    format: str | None = None
    digest: bool | None = None
    off: bool | None = None
    new_secret: bool = False


@dataclass(frozen=True, slots=True)
class Recipients:
    """The recipients in one store. ``most`` of one owner; ``private`` permits private addresses and http."""

    store: Store
    most: int
    private: bool

    def of(self, owner: str | None, after: int = 0, limit: int = 1000) -> list[Recipient]:
        """Return recipients of an owner, or of all, behind a number."""
        with self.store.read() as tx:
            return tx.recipients(owner, after, limit)

    def get(self, recipientid: int, owner: str | None = None) -> Recipient:
        """Return a recipient, of this owner if one is given; raises ``NoSuchRecipient``."""
        with self.store.read() as tx:
            return _found(tx, recipientid, owner)

    def add(self, owner: str, channel: Channel, wanted: Wanted, now: int) -> Recipient:
        """Add a recipient, ``now`` in epoch seconds; raises ``BadRecipient`` or ``TooManyRecipients``."""
        made = Recipient(0, _owner(owner), channel, "", format_for(channel, ""), False, "", False, now, "")
        made = self._changed(made, replace(wanted, new_secret=channel == Channel.WEBHOOK))
        address_for(channel, made.address, private=self.private)
        with self.store.begin() as tx:
            if len(tx.recipients(owner, 0, self.most)) >= self.most:
                raise TooManyRecipients(f"{owner} has {self.most} recipients already: remove one first")
            return tx.insert_recipient(made)

    def change(self, recipientid: int, wanted: Wanted, owner: str | None = None) -> Recipient:
        """Change a recipient. Another address, or switching it on, makes good that it was refused."""
        with self.store.begin() as tx:
            tx.lock_recipient(recipientid)
            changed = self._changed(_found(tx, recipientid, owner), wanted)
            tx.update_recipient(changed)
        return changed

    def remove(self, recipientid: int, owner: str | None = None) -> Recipient:
        """Forget a recipient, and all that waits for it."""
        with self.store.begin() as tx:
            tx.lock_recipient(recipientid)
            gone = _found(tx, recipientid, owner)
            tx.delete_recipient(recipientid)
        return gone

    def _changed(self, before: Recipient, wanted: Wanted) -> Recipient:
        channel = Channel(before.channel)
        address = before.address
        if wanted.address is not None:
            address = address_for(channel, wanted.address, private=self.private)
        refused = "" if wanted.address is not None or wanted.off is False else before.refused
        return replace(
            before,
            address=address,
            format=before.format if wanted.format is None else format_for(channel, wanted.format),
            digest=before.digest if wanted.digest is None else wanted.digest,
            off=before.off if wanted.off is None else wanted.off,
            secret=_secret(channel) if wanted.new_secret else before.secret,
            refused=refused,
        )


def as_told(one: Recipient) -> dict[str, object]:
    """Return what may be told of a recipient: not its secret."""
    return {
        "id": one.recipientid,
        "owner": one.owner,
        "channel": str(one.channel),
        "address": one.address,
        "format": one.format,
        "digest": one.digest,
        "off": one.off,
        "created": one.created,
        "refused": one.refused,
    }


def _secret(channel: Channel) -> str:
    if channel != Channel.WEBHOOK:
        raise BadRecipient("mail has no secret: only webhooks are signed")
    return new_secret()


def _owner(name: str) -> str:
    try:
        return checked_owner(name)
    except ValueError as error:
        raise BadRecipient(str(error)) from None


def _found(tx: Tx, recipientid: int, owner: str | None) -> Recipient:
    found = tx.recipient(recipientid)
    if found is None or owner not in {None, found.owner}:
        raise NoSuchRecipient(f"there is no recipient {recipientid}{f' of {owner}' if owner else ''}")
    return found


def _end(tx: Tx, recipientid: int) -> bool:
    tx.lock_recipient(recipientid)
    found = tx.recipient(recipientid)
    if found is not None:
        tx.update_recipient(replace(found, off=True))
    return found is not None


SUBSCRIBERS = Subscribers("r", "recipient", "pages of interest", _end)
