# SPDX-License-Identifier: GPL-2.0-or-later
"""Web pages of mail archives: HTML made text, and mails found in such a text, saved or pasted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

_BLOCKS = frozenset(
    [
        "p",
        "div",
        "br",
        "tr",
        "table",
        "ul",
        "ol",
        "li",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "form",
        "pre",
        "title",
    ]
)
_SILENT = frozenset(["script", "style", "template", "noscript", "svg"])
_VOID = frozenset(["br", "hr", "img", "input", "meta", "link", "wbr", "col", "area", "base"])
_HTML = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_PREFORMATTED = re.compile(r"white-space\s*:\s*(?:pre|break-spaces)", re.IGNORECASE)


def is_page(data: bytes) -> bool:
    """Whether a file is a web page."""
    return _HTML.match(data[:65536]) is not None


def to_text(page: str) -> str:
    """The text of a page: preformatted blocks as they are, the rest with its white space made single blanks."""
    reader = _Text()
    reader.feed(page)
    reader.close()
    return "".join(reader.pieces).replace("\r\n", "\n")


def title_of(page: str) -> str:
    """The page's title, empty where it has none."""
    match = re.search(r"<title[^>]*>(.*?)</title>", page, re.IGNORECASE | re.DOTALL)
    return " ".join(to_text(match.group(1)).split()) if match else ""


@dataclass(frozen=True, slots=True)
class Found:
    """A mail in a page's text: its headers begin at line ``first``, lines ``start`` to ``end`` are its body."""

    subject: str
    sender: str
    date: str
    message_id: str
    first: int
    start: int
    end: int
    answers: tuple[str, ...] = field(default=())


_FIELD = re.compile(
    r"\s*(From|Subject|Date|Message-ID|In-Reply-To|To|Cc|List|Newsgroups|References)\s*:\s*(.*)$", re.IGNORECASE
)
_PERMALINK = re.compile(r"From: (.*?) @ (\d{4}-\d\d-\d\d .*?)\s*\(permalink / raw\)\s*$")
_THREAD_LINE = re.compile(r"(?:\* )?(\[.*\] .*|Re: .*)$", re.IGNORECASE)
_END = re.compile(r"\^ permalink raw reply|\[prev in list\] |^Thread overview: |^Reply instructions:")
_IDENTITY = re.compile(r"<([^<>\s]+@[^<>\s]+)>|^([^\s<>()]+@[^\s<>()]+)")
_NOISE = re.compile(
    r"\s*(?:\[(?:thread overview|Download RAW message or body|flat|nested|raw)\b[^\]]*\]|\((?:raw|permalink / raw)\))"
)


def find_mails(lines: list[str], title: str = "") -> list[Found]:
    """Mails whose headers an archive shows as lines of text: a page of one mail, or of a thread with a permalink to each.

    Only a page of permalinks has several: what looks like headers further down in one mail is a quotation.
    """
    found: list[Found] = []
    for index, line in enumerate(lines):
        if match := _PERMALINK.match(line.strip()):
            found.append(_permalinked(lines, index, match))
    if not found:
        headed = (_headed(lines, index, title) for index, line in enumerate(lines) if _FIELD.match(line))
        found = [mail for mail in headed if mail is not None][:1]
    return [_bounded(mail, following, lines) for mail, following in zip(found, [*found[1:], None], strict=False)]


def _headed(lines: list[str], index: int, title: str) -> Found | None:
    """A block of header lines such as `Subject: ...`, whatever their order, up to an empty line."""
    first, fields = index, dict[str, str]()
    last = ""
    while index < len(lines) and lines[index].strip():
        if match := _FIELD.match(lines[index]):
            last = match.group(1).lower()
            fields.setdefault(last, _NOISE.sub("", match.group(2)).strip())
        elif last and lines[index][:1] in " \t":
            fields[last] += " " + _NOISE.sub("", lines[index]).strip()
        elif not _NOISE.sub("", lines[index]).strip():
            pass
        else:
            return None
        index += 1
    if "from" not in fields or not {"subject", "date"} & fields.keys() or index - first < 2:
        return None
    subject = " ".join(fields.get("subject", title).split())
    sender = " ".join(fields["from"].split())
    return Found(
        subject, sender, fields.get("date", ""), _id(fields.get("message-id", "")), first, index, 0, _ids(fields)
    )


def _permalinked(lines: list[str], index: int, match: re.Match[str]) -> Found:
    """`From: name @ date (permalink / raw)`, its subject some lines above."""
    subject = ""
    for above in range(index - 1, max(-1, index - 400), -1):
        text = lines[above].strip()
        if _END.search(text):
            break
        if lines[above].startswith("* ") and (line := _THREAD_LINE.match(text)):
            subject = line.group(1)
            break
        if (named := _FIELD.match(text)) and named.group(1).lower() == "subject":
            subject = named.group(2)
            break
    body = index + 1
    while body < len(lines) and lines[body].strip() and _FIELD.match(lines[body].replace("+Cc", "Cc")):
        body += 1
    return Found(" ".join(subject.split()), match.group(1).strip(), match.group(2), "", index, body, 0)


def _bounded(mail: Found, following: Found | None, lines: list[str]) -> Found:
    limit = following.first if following else len(lines)
    end = next((i for i in range(mail.start, limit) if _END.search(lines[i])), limit)
    return replace(mail, sender=_unmasked(mail.sender), end=end)


def _unmasked(sender: str) -> str:
    """An address that is shown as ``name () host ! example``, as one archive does."""
    return re.sub(r" ! ", ".", sender.replace(" () ", "@")) if " () " in sender else sender


def _id(text: str) -> str:
    match = _IDENTITY.search(text)
    return (match.group(1) or match.group(2)) if match else ""


def _ids(fields: dict[str, str]) -> tuple[str, ...]:
    answered = _id(fields.get("in-reply-to", ""))
    return (answered,) if answered else ()


class _Text(HTMLParser):
    """Collects a page's text; entities are decoded by the parser."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._open: list[tuple[str, bool]] = []
        self._silent = 0
        self._fresh = False

    @property
    def _exact(self) -> bool:
        return bool(self._open) and self._open[-1][1]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS and not (tag == "br" and self._exact):
            self._new_line()
        if tag == "br" and self._exact:
            self.pieces.append("\n")
        self._fresh = tag == "pre"  # HTML drops a line end right after <pre>
        if tag in _SILENT:
            self._silent += 1
        if tag not in _VOID:
            style = dict(attrs).get("style") or ""
            exact = self._exact or tag == "pre" or _PREFORMATTED.search(style) is not None
            if exact and not self._exact and self.pieces:
                self.pieces.append("\n")  # a block stands apart from the headers that a page shows above it
            self._open.append((tag, exact))

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT and self._silent:
            self._silent -= 1
        if any(name == tag for name, _ in self._open):
            while self._open.pop()[0] != tag:
                pass
        if tag in _BLOCKS:
            self._new_line()
        elif tag in ("td", "th"):
            self.pieces.append(" ")

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        fresh, self._fresh = self._fresh, False
        if self._exact:
            self.pieces.append(data[1:] if fresh and data.startswith("\n") else data)
        elif data.strip():
            at_start = not self.pieces or self.pieces[-1].endswith("\n")
            text = " ".join(data.split())
            blank = " " if data[0].isspace() and not at_start else ""
            self.pieces.append(blank + text + (" " if data[-1].isspace() else ""))

    def _new_line(self) -> None:
        if self.pieces and not self.pieces[-1].endswith("\n"):
            self.pieces.append("\n")
