"""One door for web/worker.js: a request as JSON in, an answer or a refusal as JSON out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from paperkiln.errors import PaperkilnError

Answer = dict[str, Any]


def answer(kind: str, request: str, data: Any = None) -> str:
    """Return `{"done": …}` or `{"error": {"code", "message"}}` as JSON.

    `request` is a JSON object, `data` the bytes of the file that it is about.
    """
    content = bytes(data) if data is not None else b""
    return _told(lambda: _HANDLERS[kind](json.loads(request), content))


def _told(ask: Callable[[], Any]) -> str:
    try:
        return json.dumps({"done": ask()})
    except PaperkilnError as error:
        return _refusal("input", str(error))
    except MemoryError:
        return _refusal("memory", "The browser has no memory left for this.")
    except RecursionError:
        return _refusal("input", "This is nested too deeply to be read.")


def _refusal(code: str, message: str) -> str:
    return json.dumps({"error": {"code": code, "message": message}})


# --- the chat, which keeps a model between two requests ------------------------------------------

_chat: Any = None


def chat_load(ember: Any, name: str) -> str:
    """Open the model in the engine; answer with what it is."""

    def load() -> Answer:
        global _chat
        from paperkiln.web.chat import open_ember

        _chat = open_ember(ember, name)
        return _chat.about()

    return _told(load)


def chat_close() -> str:
    """Let go of the model, so that the next one may take its memory."""

    def close() -> None:
        global _chat
        if _chat is not None:
            _chat.stop()
        _chat = None

    return _told(close)


def chat_begin(request: str) -> str:
    """Start a reply."""

    def begin() -> Answer:
        if _chat is None:
            raise PaperkilnError("No model is loaded yet.")
        wish = json.loads(request)
        return _chat.begin(wish["messages"], wish["settings"])

    return _told(begin)


def chat_step() -> str:
    """Answer with the next piece of the reply."""
    return _told(lambda: _chat.step())


def chat_stop() -> str:
    """End the reply."""
    return _told(lambda: _chat.stop())


# --- the other rooms ----------------------------------------------------------------------------

# A room is imported when it is first asked for: papers need no pydantic, specs no LaTeX reader.


def _spec_schema(request: Answer, data: bytes) -> Answer:
    from paperkiln.web import spec

    return spec.schema()


def _spec_check(request: Answer, data: bytes) -> Answer:
    from paperkiln.web import spec

    return spec.check(request["values"], request.get("gflops"))


def _paper_read(request: Answer, data: bytes) -> Answer:
    from paperkiln.web import papers

    return papers.read(data, request["name"], request.get("size"))


def _paper_emit(request: Answer, data: bytes) -> Answer:
    from paperkiln.web import papers

    return papers.emit(data, request["name"], request.get("size"), request.get("fit"))


def _paper_link(request: Answer, data: bytes) -> Answer:
    from paperkiln.web import papers

    return papers.link(request["text"])


_HANDLERS: dict[str, Callable[[Answer, bytes], Answer]] = {
    "spec.schema": _spec_schema,
    "spec.check": _spec_check,
    "paper.read": _paper_read,
    "paper.emit": _paper_emit,
    "paper.link": _paper_link,
}
