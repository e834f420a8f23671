"""What the pages of an owner say: alerts, profiles, recipients. Whatever others wrote is escaped."""

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from lcc_scrapy.annotation import alert_texts, profile_forms
from lcc_scrapy.annotation.aci_details import shown
from lcc_scrapy.annotation.signing_in import FORM_KEY, Visitor
from lcc_scrapy.domain.acis import Aci, Channel, Recipient
from lcc_scrapy.domain.printable import printable
from lcc_scrapy.domain.urds import EVERYTHING, Process, Urd
from lcc_scrapy.web import html

_NOTHING = Markup("")
_NAV = Markup(
    '<a href="/my/alerts">Alerts</a><a href="/my/profiles">Profiles</a>'
    '<a href="/my/recipients">Recipients</a>'
)
_KEYWORDS_SHOWN = 12
_LEVELS = ("in the daily digest", "soon", "at once")
_FORMATS = {"html": "HTML", "text": "text", "xml": "XML", "json": "JSON"}


def nav(whose: Visitor | None) -> Markup:
    """Return what stands at the end of each page."""
    if whose is None:
        return _NOTHING
    out = html.button("/my/sign-out", "Sign out", form_key(whose))
    return _NAV + html.paragraph("Signed in as {owner}. ", owner=whose.owner) + out


def form_key(whose: Visitor) -> Markup:
    """Return the field that each form has."""
    return html.hidden(FORM_KEY, whose.form_key)


def sign_in(path: str, *, was_signed_in: bool) -> Markup:
    """Return the form that asks for the token; ``path`` is the page that was asked for."""
    again = html.paragraph('<a href="{path}">I am signed in already: go on</a>', path=path)
    return (
        html.form(
            "/my/sign-in",
            "Sign in",
            html.field("token", "Token", "The operator made it with: lcc token add NAME --scope annotate",
                       kind="password", required=True),
        )
        + (again if was_signed_in else _NOTHING)
    )  # fmt: skip


# --- alerts --------------------------------------------------------------------------------------


def alerts(acis: Sequence[Aci], older: int, feed: str) -> Markup:
    """Return alerts, newest first; ``older``: the number below which there are others, 0 = none."""
    if not acis:
        return html.paragraph("Nothing was found yet. Profiles say what is of interest.") + _feed(feed)
    more = html.paragraph('<a href="/my/alerts?before={older}">Older ones</a>', older=older)
    return Markup("").join(map(article, acis)) + (more if older else _NOTHING) + _feed(feed)


def article(aci: Aci) -> Markup:
    """Return one alert, with its diff."""
    found = shown(aci)
    facts = Markup('<p class="facts">{}<br>{}{}</p>').format(
        alert_texts.address(aci),
        alert_texts.facts(aci),
        ". The page has another content now, or is gone" if aci.expired else "",
    )
    return Markup("<article><h2>{}</h2>{}{}{}{}{}</article>").format(
        alert_texts.heading(aci),
        facts,
        Markup("").join(Markup("<p>{}</p>").format(alert_texts.highlighted(one)) for one in found.extracts),
        alert_texts.sentences(found.added, "+", "ins"),
        alert_texts.sentences(found.removed, "-", "del"),
        _diff(found.diff),
    )


def _diff(diff: str) -> Markup:
    if not diff:
        return _NOTHING
    lines = Markup("\n").join(map(_line, diff.splitlines()))
    return Markup("<details><summary>All changes</summary><pre>{}</pre></details>").format(lines)


def _line(text: str) -> Markup:
    tag = {"+": "ins", "-": "del"}.get(text[:1], "")
    if not tag:
        return Markup("{}").format(printable(text))
    return Markup("<{0}>{1}</{0}>").format(Markup(tag), printable(text))  # noqa: S704 - of our own


def _feed(address: str) -> Markup:
    return Markup(
        "<details><summary>For a feed reader</summary><p>Who knows this address can read your alerts, until"
        " your token is revoked.</p><pre>{}</pre></details>"
    ).format(address)


# --- profiles ------------------------------------------------------------------------------------


def profiles(urds: Sequence[Urd], after: int, whose: Visitor) -> Markup:
    """Return profiles, by number; ``after``: the number above which there are others, 0 = none."""
    new = html.paragraph('<a href="/my/profiles/new">New profile</a>')
    more = html.paragraph('<a href="/my/profiles?after={after}">More</a>', after=after)
    listed = Markup("").join(_profile(one, whose) for one in urds)
    return new + (listed or html.paragraph("There is no profile yet.")) + (more if after else _NOTHING)


def _profile(urd: Urd, whose: Visitor) -> Markup:
    place = "the whole cache" if urd.uri == EVERYTHING else urd.uri
    facts = f"{_what(urd)}. Told {_LEVELS[urd.urgency]}, from relevance {urd.threshold} on"
    return Markup(
        '<article><h2><a href="/my/profiles/{number}">Profile {number}</a></h2><p>{place}</p>'
        '<p class="facts">{facts}</p>{remove}</article>'
    ).format(
        number=urd.urdid,
        place=printable(place),
        facts=printable(facts),
        remove=html.button(f"/my/profiles/{urd.urdid}/remove", "Remove", form_key(whose)),
    )


def _what(urd: Urd) -> str:
    words = ", ".join(f"{one.key} ({one.weight})" for one in urd.keywords[:_KEYWORDS_SHOWN])
    more = f" and {len(urd.keywords) - _KEYWORDS_SHOWN} others" if len(urd.keywords) > _KEYWORDS_SHOWN else ""
    if urd.processtype == Process.RULE:
        return f"Rule: {urd.rule[:200]}"
    kind = "Changes" if urd.processtype == Process.CHANGE else "Keywords"
    return f"{kind}{f': {words}{more}' if words else ' of any kind'}"


def profile(action: str, values: Mapping[str, str], whose: Visitor) -> Markup:
    """Return the form of a profile, with a button to save it and one to try it."""
    inside = Markup("").join(profile_forms.fields(values))
    return Markup(
        '<form method="post" action="{action}">{key}{fields}<button name="do" value="save">Save</button> '
        '<button name="do" value="try">Try it on cached pages</button></form>'
    ).format(action=action, key=form_key(whose), fields=inside)


def tried(acis: Sequence[Aci], pages: int, *, complete: bool) -> Markup:
    """Return what a profile would have found."""
    those = "all cached pages in its scope" if complete else "the newest pages in its scope"
    count = f"Of {pages} pages ({those}), {len(acis)} would have been told. Nothing is saved."
    return html.good(count) + Markup("").join(map(article, acis)) + Markup("<hr>")


# --- recipients ----------------------------------------------------------------------------------


def recipients(found: Sequence[Recipient], whose: Visitor, values: Mapping[str, str]) -> Markup:
    """Return recipients, and the form for another one."""
    listed = Markup("").join(_recipient(one, whose) for one in found)
    new = Markup("<hr><h2>Another recipient</h2>")
    return (listed or html.paragraph("There is no recipient yet.")) + new + html.form(
        "/my/recipients",
        "Add",
        form_key(whose),
        html.choice("channel", "Tell me by", "", {"mail": "mail", "webhook": "webhook"},
                    values.get("channel", "mail")),
        html.field("address", "Address", "A mail address, or an https URL.", values.get("address", ""),
                   required=True),
        html.choice("format", "As", "", {"": "HTML by mail, JSON by webhook", **_FORMATS},
                    values.get("format", "")),
        html.check("digest", "All in one message a day", "", checked=bool(values.get("digest"))),
    )  # fmt: skip


def _recipient(one: Recipient, whose: Visitor) -> Markup:
    key, path = form_key(whose), f"/my/recipients/{one.recipientid}"
    how = f"{one.channel}, {_FORMATS.get(one.format, one.format)}{', daily digest' if one.digest else ''}"
    switch = ("on", "Switch on") if one.off or one.refused else ("off", "Switch off")
    buttons = [
        html.button(path, switch[1], key, html.hidden("do", switch[0])),
        html.button(path, "Remove", key, html.hidden("do", "remove")),
    ]
    if one.channel == Channel.WEBHOOK:
        buttons.append(html.button(path, "New secret", key, html.hidden("do", "secret")))
    wrong = html.alert(f"it gets nothing: {one.refused}") if one.refused else _NOTHING
    state = " (switched off)" if one.off else ""
    return Markup('<article><h2>{}{}</h2><p class="facts">{}</p>{}{}</article>').format(
        printable(one.address), state, how, wrong, Markup("").join(buttons)
    )


def secret(made: Recipient) -> Markup:
    """Return the secret of a webhook, which is shown once."""
    return (
        html.alert("Copy this now: it is shown only once.")
        + html.paragraph("The calls of {address} are signed with this secret:", address=made.address)
        + html.literal(made.secret)
        + html.paragraph('<a href="/my/recipients">Go on</a>')
    )
