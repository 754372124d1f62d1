"""Makes the golden model and its string: `python tests/golden/make.py`, about two minutes.

A decoder with grouped-query attention, trained on TinyChat written as plain transcripts: no
token ends a text, so greedy decoding goes on, and an error in the rotation's layout or sign,
harmless over a few tokens, shows in the string.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from paperkiln.infer.generate import complete
from paperkiln.infer.load import load_run
from paperkiln.infer.sampling import GREEDY
from paperkiln.lab.fingerprint import fingerprint
from paperkiln.spec import read_spec
from paperkiln.train.display import Display
from paperkiln.train.run import run
from paperkiln.train.tinychat import generate

HERE = Path(__file__).parent
PROMPT = "- Good morning!\n-"
N_TOKENS = 100  # with the prompt, less than the context of 128: no window moves


def write_corpus(path: Path) -> None:
    """Write the transcripts: a dash before each turn, an empty line between dialogues."""
    dialogues = ("\n".join(f"- {text}" for _, text in d) for d in generate(6000, seed=5))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n\n".join(dialogues) + "\n", encoding="utf-8")


def main() -> None:
    """Train, and write golden.gguf and golden.json beside this file."""
    write_corpus(Path("build/golden-corpus.txt"))
    with Display() as display:
        folder = run(read_spec(HERE / "spec.json"), overwrite=True, listen=display)
    model = load_run(folder)
    result = complete(
        model.decoder, model.tokenizer, PROMPT, max_new_tokens=N_TOKENS, sampling=GREEDY
    )
    shutil.copyfile(folder / "model.gguf", HERE / "golden.gguf")
    golden = {
        "prompt": PROMPT,
        "text": result.text,
        "ids": result.ids,
        "fingerprint": fingerprint(model.params),
    }
    text = json.dumps(golden, indent=2, ensure_ascii=False) + "\n"
    (HERE / "golden.json").write_text(text, encoding="utf-8")
    print(PROMPT + result.text)


if __name__ == "__main__":
    main()
