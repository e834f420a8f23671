"""What the pages of registration say."""

from collections.abc import Mapping
from datetime import UTC, datetime

from markupsafe import Markup

from lcc_scrapy.apps.registration.hints import ASK, Places, file_url, hints
from lcc_scrapy.apps.registration.rules import FILE, Kind
from lcc_scrapy.apps.registration.service import Done, Given
from lcc_scrapy.web.html import (
    alert,
    check,
    field,
    form,
    good,
    hidden,
    items,
    literal,
    paragraph,
)

Values = Mapping[str, str]

ACTIVATE: Mapping[Kind, str] = {
    Kind.PROVIDER: "/register/activate",
    Kind.ROOT: "/register/root/activate",
    Kind.PASSWORD: "/register/password/activate",
}
_PID = "The number that you were given."
_SENT = "It is sent to this cache only."


def registration_form(values: Values, *, mails: bool) -> Markup:
    """Return the form of step one."""
    mail = check(
        "mail", "Send it to me by e-mail too", "To the address above.", checked=bool(values.get("mail"))
    )
    return form(
        "/register",
        "Register",
        field("site", "Address of your site", "For example https://www.example.org/ or"
              " https://www.example.org/~me/", values.get("site", ""), required=True),
        field("email", "E-mail (optional)", "For messages about your URLs.", values.get("email", ""),
              kind="email"),
        mail if mails else Markup(""),
        field("bandwidth", "Bytes per second (optional)", "How fast your site may be fetched from:"
              " 200k or 2M. Empty: as fast as it goes.", values.get("bandwidth", "")),
        field("hours", "Hours (optional)", "When your site may be fetched from: mon-fri 20-06, or 0-8."
              " Empty: at any time.", values.get("hours", "")),
        field("timezone", "Time zone of these hours (optional)", "For example Europe/Amsterdam.",
              values.get("timezone", "")),
    )  # fmt: skip


def registration_intro() -> Markup:
    """Return what stands above that form."""
    return paragraph(
        "This cache keeps copies of what you publish, and fetches only what you say has changed."
        " To use it you show that the site is yours, in two steps: you get a secret here, and put it"
        " into a file on your site."
    )


def proof_form(kind: Kind, values: Values) -> Markup:
    """Return the form of step two, for whoever comes back later."""
    folder = (
        Markup("")
        if kind is Kind.PASSWORD
        else field(
            "folder",
            "Folder of the file (optional)",
            "Empty: the address that you gave before.",
            values.get("folder", ""),
        )
    )
    return form(
        ACTIVATE[kind],
        "The file is there",
        field("pid", "Provider id", _PID, values.get("pid", ""), required=True),
        field("password", "Password", _SENT, kind="password", required=True),
        folder,
    )


def root_form(values: Values) -> Markup:
    """Return the form that asks for a secret for a further root."""
    return form(
        "/register/root",
        "Get a secret",
        field("pid", "Provider id", _PID, values.get("pid", ""), required=True),
        field("password", "Password", _SENT, kind="password", required=True),
        field("folder", "Address of the other folder or site", "For example https://docs.example.org/",
              values.get("folder", ""), required=True),
    )  # fmt: skip


def password_form(values: Values) -> Markup:
    """Return the form that asks for a new password."""
    return form(
        "/register/password",
        "Get a new password",
        field("pid", "Provider id", _PID, values.get("pid", ""), required=True),
    )


def given_body(given: Given, password: str, *, mailed: bool) -> Markup:
    """Return what was given out, what to do with it, and the form of step two.

    ``password`` is the one that belongs to the proof.
    """
    made = given.registration
    shown = [("Provider id", str(made.pid)), ("Password", given.password), ("Secret", given.secret)]
    expires = datetime.fromtimestamp(made.expires, UTC)
    return Markup("").join(
        [
            alert("Copy this now: it is shown only once.") if given.password else Markup(""),
            *(
                paragraph("{name}: <code>{value}</code>", name=name, value=value)
                for name, value in shown
                if value
            ),
            good(f"It is also on its way to {made.contact}.") if mailed else Markup(""),
            items(_what_to_do(given)),
            paragraph("This offer ends at {at} UTC.", at=f"{expires:%Y-%m-%d %H:%M}"),
            _next_form(given, password),
        ]
    )


def _what_to_do(given: Given) -> list[Markup]:
    made = given.registration
    make = paragraph("Make a file with the name <code>{name}</code>. The secret is its only line:", name=FILE)
    make += literal(f"echo {given.secret} > {FILE}")
    if made.kind == Kind.PASSWORD:
        where = paragraph("Put it into every folder with which you have registered.")
    else:
        where = paragraph(
            "Put it into the folder of your documents, so that it is found at <code>{url}</code>."
            " You may then push what lies in this folder and below it. The higher you put the file, the more"
            " that is.",
            url=file_url(made.site),
        )
    return [make, where, paragraph("Press the button. You may remove the file afterwards.")]


def _next_form(given: Given, password: str) -> Markup:
    made, kind = given.registration, Kind(given.registration.kind)
    note = "Change it only if the file is in another folder of your site."
    folder = field("folder", "Folder of the file", note, made.site) if made.site else Markup("")
    return form(
        ACTIVATE[kind], "The file is there", hidden("pid", made.pid), hidden("password", password), folder
    )


def retry_body(kind: Kind, text: str, values: Values) -> Markup:
    """Return what is said when the file was not found, and the form to try again."""
    reasons = items(
        [
            paragraph(
                "The file is not there, or not readable for everybody. Open {where} in a browser.",
                where=_address(values),
            ),
            paragraph("It holds more than the secret: no blanks, no HTML, one line."),
            paragraph(
                "Your site sends visitors on to another host, for example from <code>example.org</code> to"
                " <code>www.example.org</code>. Then register the host at which they arrive."
            ),
            paragraph(
                "Your site answers slowly, asks for a password, or has a certificate that is not valid."
            ),
        ]
    )
    folder = (
        field(
            "folder",
            "Folder of the file",
            "Empty: the address that you gave before.",
            values.get("folder", ""),
        )
        if kind is not Kind.PASSWORD
        else Markup("")
    )
    again = form(
        ACTIVATE[kind],
        "Try again",
        hidden("pid", values.get("pid", "")),
        hidden("password", values.get("password", "")),
        folder,
    )
    return alert(text) + paragraph("What it may be:") + reasons + again


def _address(values: Values) -> Markup:
    """Return where the file was looked for, as far as the form told it."""
    folder = values.get("folder", "")
    if not folder.endswith("/"):
        return Markup("its address")
    return Markup("<code>{}</code>").format(file_url(folder))


def done_body(done: Done, places: Places, password: str) -> Markup:
    """Return what is said when the file was found."""
    parts = [_found(done), paragraph("Provider id: <code>{pid}</code>", pid=done.pid)]
    parts += [paragraph("Root: <code>{root}</code>", root=root) for root in done.roots]
    if not done.active:
        return Markup("").join(
            [
                *parts,
                paragraph("The operator has to approve it now. Until then your password logs in nowhere."),
            ]
        )
    return Markup("").join([*parts, *_how_to_push(done, places, password)])


def _found(done: Done) -> Markup:
    if not done.active:
        return good("The file was found.")
    said = {
        Kind.PROVIDER: "Your password is active. You may remove the file, and push.",
        Kind.ROOT: "This folder is yours to push now. You may remove the file.",
        Kind.PASSWORD: "Your new password is active, and the old one is not. You may remove the file.",
    }
    return good(f"The file was found. {said[Kind(done.kind)]}")


def _how_to_push(done: Done, places: Places, password: str) -> list[Markup]:
    told = hints(places, done, password)
    shown = [place for place in (told.push_url, *told.uns) if place]
    return [
        paragraph("Push to: <code>{where}</code>", where=", ".join(shown) or ASK),
        paragraph(
            "With <code>lcc-push</code>: these lines go into <code>~/.config/lcc-push.ini</code>, which"
            " nobody else may read (<code>chmod 600</code>). DOCROOT is the folder of your documents on disk."
        ),
        literal(told.config),
        paragraph("Then this command tells what is new:"),
        literal(told.lcc_push),
        paragraph(
            "With the three older commands, after you have put the password into <code>lcc.pwd</code>:"
        ),
        literal(told.commands),
    ]
