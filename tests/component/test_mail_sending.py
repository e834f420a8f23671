"""One message over a real mail server: what arrives, and what is said when it does not."""

import ssl
import threading
from dataclasses import replace

import pytest

from lcc_scrapy.domain.errors import ConfigurationError
from lcc_scrapy.domain.mail_rules import MailRules, Secret
from lcc_scrapy.mail.sending import Mail, MailDelayed, MailRefused, message_of, smtp_mailer
from tests.certificates import Authority
from tests.mail_server import any_server, mail_server, scripted_server
from tests.ports import free_port

HEADERS = {"List-Unsubscribe": f"<https://push.example.org/{'u' * 300}>", "Message-ID": "<d.7@example.org>"}


def rules(port, **values):
    return MailRules(**{"sender": "LCC of Example <lcc@example.org>", "port": port, **values})


def send(port, to="a@example.org", subject="x", text="y", headers=None, **values):
    smtp_mailer(rules(port, **values)).send(to, subject, text, headers)


def test_a_message_arrives_as_it_was_written():
    text = "Grüße\n\n.a line with a dot\n" + "x" * 1500 + "\nFrom here on\n"
    with mail_server() as server:
        send(server.port, "Info@bücher.example", "12 URLs: ä digest", text, HEADERS)
    (taken,) = server.mails
    assert (taken.sender, taken.to) == ("lcc@example.org", ["Info@xn--bcher-kva.example"])
    assert taken.text == text
    message = taken.message
    assert message["From"] == "LCC of Example <lcc@example.org>"
    assert message["Subject"] == "12 URLs: ä digest"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["Message-ID"] == HEADERS["Message-ID"]
    assert f"List-Unsubscribe: {HEADERS['List-Unsubscribe']}\r\n".encode() in taken.data
    assert max(map(len, taken.data.split(b"\r\n"))) <= 998
    assert message["Date"].datetime.tzinfo is not None


@pytest.mark.parametrize(
    "forged", ["x\r\nBcc: b@example.org", "x\nBcc: b@example.org", "x\0\x1b[2J", "x\u2028y"]
)
def test_nothing_steps_out_of_its_header(forged):
    with mail_server() as server:
        send(server.port, subject=forged, text=f"a{forged}", headers={"X-About": forged})
    (taken,) = server.mails
    assert set(taken.message.keys()) == {
        "From", "To", "Subject", "Date", "Auto-Submitted", "X-About", "Message-ID",
        "Content-Type", "Content-Transfer-Encoding", "MIME-Version",
    }  # fmt: skip
    assert taken.to == ["a@example.org"]
    assert taken.message["Subject"].isprintable()
    assert all(line.isprintable() for line in taken.text.split("\n"))


@pytest.mark.parametrize("name", ["X:", "X\r\nBcc", "", "Xü", "Subject", "to"])
def test_a_header_of_another_name_is_refused(name):
    with pytest.raises(ValueError, match="not a header"):
        message_of("lcc@example.org", Mail("a@example.org", "x", "y", {name: "z"}))


def test_what_is_no_address_is_refused_without_a_connection():
    with pytest.raises(MailRefused, match="expected one address"):
        send(1, "a@example.org\r\nRCPT TO:<b@example.org>")


@pytest.mark.parametrize("where", ["rcpt", "data"])
@pytest.mark.parametrize(
    ("said", "error"),
    [("550 5.1.1 no such user", MailRefused), ("451 4.7.1 greylisted, come again", MailDelayed)],
)
def test_refused_for_ever_and_not_now_are_told_apart(where, said, error):
    with mail_server() as server:
        setattr(server, where, lambda _: said)
        with pytest.raises(error, match=f"the mail server says {said}"):
            send(server.port)
    assert server.mails == []


def test_a_refused_sender_says_nothing_about_the_address():
    with mail_server() as server:
        server.mail = lambda _: "550 who are you"
        with pytest.raises(MailDelayed, match="550 who are you"):
            send(server.port)


def test_nobody_who_listens_is_a_reason_to_try_later():
    with pytest.raises(MailDelayed, match="Connection refused"):
        send(free_port())
    with pytest.raises(MailDelayed, match="no conversation"):
        send(25, host="no-such-host.invalid")


def test_a_server_that_greets_with_a_refusal_is_tried_later():
    with (
        scripted_server(lambda *_: None, b"554 go away\r\n") as port,
        pytest.raises(MailDelayed, match="554 go away"),
    ):
        send(port)


def test_what_a_server_says_is_shown_in_one_short_line():
    said = b"550-\x1b[2Jno\r\n550 " + b"x" * 1500 + b"\r\n"
    with mail_server() as server:
        server.rcpt = lambda _: said.decode("ascii").rstrip()
        with pytest.raises(MailRefused) as refused:
            send(server.port)
    assert str(refused.value).isprintable()
    assert "\\x1b[2Jno" in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("greeting", [b"", b"220-x\r\n"])
def test_a_server_that_falls_silent_is_given_up(greeting):
    with scripted_server(lambda *_: None, greeting) as port, pytest.raises(MailDelayed):
        send(port, timeout=0.3)


def test_a_server_that_answers_byte_by_byte_is_cut_off():
    """Each byte comes within the timeout of a socket; all of them together would take for ever."""

    def drip(one):
        while True:
            one.wfile.write(b"2")
            threading.Event().wait(0.02)

    with any_server(drip) as port, pytest.raises(MailDelayed):
        send(port, timeout=0.5)


# --- login and TLS -------------------------------------------------------------------------------


def test_it_logs_in_and_the_password_is_in_no_message(tmp_path):
    file = tmp_path / "password"
    file.write_text("sesame\n")
    with mail_server(password="sesame") as server:
        send(server.port, user="lcc", password_file=str(file))
        send(server.port, user="lcc", password=Secret("sesame"))
        with pytest.raises(MailDelayed) as refused:
            send(server.port, user="lcc", password=Secret("wrong-one"))
    assert len(server.mails) == 2
    assert str(refused.value) == "the mail server refuses the login (code 535)"
    assert "sesame" not in repr(rules(1, password=Secret("sesame")))


def test_a_password_does_not_cross_a_network_in_plain_text():
    far = rules(25, host="mail.example.org", user="lcc", password=Secret("x"))
    with pytest.raises(ConfigurationError, match="set LCC_MAIL_TLS to starttls or tls"):
        smtp_mailer(far)
    assert smtp_mailer(replace(far, tls="starttls")) is not None
    assert smtp_mailer(replace(far, user="")) is not None


def test_without_a_sender_there_is_no_mail():
    assert smtp_mailer(MailRules()) is None


def test_a_password_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"LCC_MAIL_PASSWORD_FILE: .*gone"):
        smtp_mailer(rules(25, user="lcc", password_file=str(tmp_path / "gone")))


@pytest.mark.parametrize("kind", ["starttls", "tls"])
def test_the_way_is_encrypted_and_the_certificate_has_to_be_valid(kind, tmp_path, monkeypatch):
    authority = Authority()
    folder = authority.issue("127.0.0.1").write(tmp_path / "x")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    with mail_server(**{kind: context}) as server:
        with pytest.raises(MailDelayed, match="certificate"):
            send(server.port, tls=kind)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        send(server.port, tls=kind)
        assert len(server.mails) == 1


def test_starttls_is_not_given_up_where_the_server_has_none():
    with mail_server() as server, pytest.raises(MailDelayed, match="STARTTLS"):
        send(server.port, tls="starttls")
    assert server.mails == []


def test_a_message_that_was_taken_over_is_sent_however_the_goodbye_ends():
    text = []

    def answer(number, line):
        command = line.strip().lower()
        if text and command not in {b".", b"quit"}:
            return b""  # one more line of the message
        text.extend([line] if command == b"data" else [])
        return {b"data": b"354 go on\r\n", b"quit": None}.get(command, b"250 ok\r\n")

    with scripted_server(answer) as port:
        send(port, timeout=1.0)
    assert text
