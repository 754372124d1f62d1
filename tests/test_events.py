"""events.jsonl: what is written is read back, torn lines are forgiven, wrong ones are not."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from pydantic import ValidationError

from paperkiln.errors import PaperkilnError
from paperkiln.train import events
from paperkiln.train.events import EventLog, read_events, rewind

START = events.Start(name="café 🦙", steps=4, version="0", device="cpu")
MODEL = events.Model(arch={"d_model": 4, "preset": None}, parameters=10)
DATA = events.Data(train_tokens=9, val_tokens=2, vocab_size=5, corpus_sha256="00")
RESUME = events.Resume(step=2)
STOP = events.EarlyStop(step=3, best_val=1.0)
FAILED = events.Failed(step=4, reason='loss nan\n"quoted"')
EXPORT = events.Export(format="gguf", path="a/b", note="c")
SKIPPED = events.ExportSkipped(format="gguf", reason="why")
DONE = events.Done(final_step=4, best_val=1.0, early_stopped=False, wall_seconds=0.5)


def step(n: int, loss: float = 1.5) -> events.Step:
    return events.Step(
        step=n, loss=loss, grad_norm=0.1 + 0.2, lr=1e-3, tokens_per_second=9.5, grads={"embed": 1.0}
    )


def evaluation(n: int) -> events.Eval:
    return events.Eval(step=n, val_loss=math.pi, bits_per_byte=1e-300)


ALL = [START, MODEL, DATA, RESUME, step(1), evaluation(1), STOP, FAILED, EXPORT, SKIPPED, DONE]


def write(path: Path, *lines: events.Event | str) -> Path:
    log = EventLog(path)
    for line in lines:
        if isinstance(line, str):
            log._file.write(line.encode())
        else:
            log.append(line)
    log.close()
    return path


def test_every_kind_is_covered_here() -> None:
    assert {type(event) for event in ALL} == set(events.Event.__args__)


def test_what_is_written_is_read_back_exactly(tmp_path: Path) -> None:
    path = write(tmp_path / "e", *ALL)
    assert list(read_events(path)) == ALL
    assert len(path.read_bytes().splitlines()) == len(ALL), "one line each"


def test_a_log_is_appended_to(tmp_path: Path) -> None:
    write(tmp_path / "e", START)
    assert list(read_events(write(tmp_path / "e", DONE))) == [START, DONE]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_no_event_holds_a_number_that_is_not_finite(value: float) -> None:
    with pytest.raises(ValidationError):
        step(1, loss=value)
    with pytest.raises(ValidationError):
        events.Step(**(step(1).model_dump() | {"grads": {"embed": value}}))
    with pytest.raises(ValidationError):
        events.Eval(step=1, val_loss=1.0, bits_per_byte=value)


def test_a_file_cut_anywhere_gives_its_whole_lines(tmp_path: Path) -> None:
    data = write(tmp_path / "e", *ALL).read_bytes()
    for length in range(len(data) + 1):
        (tmp_path / "cut").write_bytes(data[:length])
        assert list(read_events(tmp_path / "cut")) == ALL[: data[:length].count(b"\n")]


def test_unknown_events_and_keys_are_passed_over(tmp_path: Path) -> None:
    later = '{"event": "lottery", "ticket": 3}\n'
    more = json.dumps(START.model_dump() | {"colour": "blue"}) + "\n"
    assert list(read_events(write(tmp_path / "e", later, more, DONE))) == [START, DONE]


@pytest.mark.parametrize(
    "line",
    [
        "{", "[1]", "7", "null", "", "\x00", '{"event": []}', '{"event": "resume"}',
        '{"event": "resume", "step": "two"}', '{"event": "eval", "step": 1, "val_loss": NaN, '
        '"bits_per_byte": 1.0}', '{"event": "step", "step": 0, "loss": 1, "grad_norm": 1, "lr": 1, '
        '"tokens_per_second": 1}',
    ],
)  # fmt: skip
def test_a_wrong_line_before_the_last_is_named(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "events.jsonl", START, line + "\n", DONE)
    with pytest.raises(PaperkilnError, match=r"events\.jsonl:2: not an event"):
        list(read_events(path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"event": "resume", "step": "two"}', 'resume.step = "two": Input should be a valid int'),
        ('{"event": "eval", "step": -1, "val_loss": 1.0}', "eval.step = -1"),
        ('{"event": "eval", "step": -1, "val_loss": 1.0}', "eval.bits_per_byte: Field required"),
        ('{"event": ["step"]}', 'event is ["step"], no name'),
        ('{"event": "resume", "step": ' + "9" * 5000 + "}", "a JSON object on one line"),
        ("[" * 100_000, "a JSON object on one line"),
    ],
)
def test_what_is_wrong_in_a_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path / "events.jsonl", START, line + "\n", DONE)
    with pytest.raises(PaperkilnError) as error:
        list(read_events(path))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "e").write_bytes(b'{"event": "\xff"}\n{}\n')
    with pytest.raises(PaperkilnError, match=":1: not an event"):
        list(read_events(tmp_path / "e"))


RUN = [START, MODEL, DATA, step(1), step(2), evaluation(2), step(3), step(4), evaluation(4)]
REWOUND = [  # events, step of the checkpoint, what is left
    (RUN, 4, RUN),
    (RUN, 3, RUN[:7]),
    (RUN, 2, RUN[:6]),
    (RUN, -1, []),
    ([*RUN, EXPORT, SKIPPED, DONE], 4, RUN),
    ([*RUN[:5], RESUME, *RUN[5:], FAILED], 3, [*RUN[:5], RESUME, *RUN[5:7]]),
    ([*RUN[:7], STOP, EXPORT, DONE], 3, [*RUN[:7], STOP]),
    ([*RUN[:7], STOP], 2, RUN[:6]),
]


@pytest.mark.parametrize(("before", "at", "after"), REWOUND)
@pytest.mark.parametrize("torn", ["", '{"event": "st'])
def test_rewinding_drops_what_came_after_the_checkpoint(
    tmp_path: Path, before: list, at: int, after: list, torn: str
) -> None:
    path = write(tmp_path / "e", *before, torn)
    rewind(path, at)
    assert list(read_events(path)) == after
    assert list(read_events(write(path, step(9)))) == [*after, step(9)], "the torn line is gone"
    assert [p.name for p in tmp_path.iterdir()] == ["e"]


def test_a_disk_that_takes_a_part_of_a_line_gets_the_rest(tmp_path: Path) -> None:
    class SevenBytes:
        def __init__(self, file) -> None:
            self.file = file

        def write(self, data: bytes) -> int:
            return self.file.write(data[:7])

        def close(self) -> None:
            self.file.close()

    log = EventLog(tmp_path / "e")
    log._file = SevenBytes(log._file)
    for event in ALL:
        log.append(event)
    log.close()
    assert list(read_events(tmp_path / "e")) == ALL


def test_the_events_of_a_run_are_in_order_and_plain_json(tiny_run: Path) -> None:
    def no_constant(name: str) -> float:
        raise AssertionError(name)

    lines = (tiny_run / "events.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line, parse_constant=no_constant)["event"] for line in lines]
    five = ["step"] * 5 + ["eval"]
    assert kinds == ["start", "model", "data", *five * 4, "export", "export", "done"]
    found = list(read_events(tiny_run / "events.jsonl"))
    steps = [e for e in found if isinstance(e, events.Step)]
    assert [e.step for e in steps] == list(range(1, 21))
    for e in steps:
        if e.step % 5:
            assert e.grads is None
        else:
            assert set(e.grads) == {"embed", "blocks.0", "norm"}
            total = math.sqrt(sum(n * n for n in e.grads.values()))
            assert total == pytest.approx(e.grad_norm, rel=1e-5)
    done = found[-1]
    values = [e.val_loss for e in found if isinstance(e, events.Eval)]
    assert done.best_val == min(values)
    assert done.final_step == 20
    assert not done.early_stopped
