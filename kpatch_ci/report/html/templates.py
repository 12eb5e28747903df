# SPDX-License-Identifier: GPL-2.0-or-later
"""How pages are made of templates: everything is escaped, nothing is fetched, and the page's own policy holds it to that."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from kpatch_ci.report.clean import visible


@dataclass(frozen=True, slots=True)
class Templates:
    """Those in ``package``'s assets/, beside script.js and style.css, which goes on where our base.css ends.

    ``functions`` are what they may call.
    """

    package: str
    functions: tuple[Callable[..., Any], ...]

    def render(self, template: str, **values: Any) -> str:
        """The page, ending in a newline. It is given ``style``, ``script``, and the ``policy`` that allows these two alone."""
        style = _asset(__package__, "base.css") + _asset(self.package, "style.css")
        script = _asset(self.package, "script.js")
        policy = (
            f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
            " base-uri 'none'; form-action 'none'"
        )
        own = {"style": Markup(style), "script": Markup(script)}  # noqa: S704 (our own files)
        page = _environment(self).get_template(template)
        return page.render(policy=policy, **own, **values).rstrip("\n") + "\n"


@cache
def _environment(templates: Templates) -> Environment:
    made = Environment(
        loader=FunctionLoader(lambda name: _asset(templates.package, name)),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {function.__name__: function for function in templates.functions}
    return made


def _shown(value: Any) -> Any:
    """Every value on its way into a page, before it is escaped."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "-"
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def _asset(package: str, name: str) -> str:
    return files(package).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _hash(text: str) -> str:
    """As a Content Security Policy names an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
