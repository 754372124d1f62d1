"""Llama files as other people make them: the same ids and the same text in three engines.

No published file can be fetched here, so they are made: a SentencePiece vocabulary learned from a
text, random weights of every type that the engine reads, the chat templates that go with them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from bpe_files import CHATML_TOKENS, LLAMA3_TOKENS, bpe_keys, train_bpe
from ember_host import ember_tokens, modules, numpy_tokens, open_in_ember
from llama_cpp import greedy_llama_cpp, llama_cpp
from sentencepiece_files import quantise, train_vocabulary, vocabulary_keys, write_llama

from paperkiln.errors import PaperkilnError
from paperkiln.formats.export import export_model
from paperkiln.formats.gguf_io import dequantize
from paperkiln.formats.gguf_reader import TensorInfo, read_header
from paperkiln.formats.gguf_writer import write_gguf
from paperkiln.infer import ember as host
from paperkiln.infer.chat import ChatSession
from paperkiln.infer.chat_template import (
    PLAIN,
    encode_chat,
    encode_frame,
    reply_ends,
    template_of,
)  # fmt: skip
from paperkiln.infer.load import load_run
from paperkiln.infer.sampling import GREEDY
from paperkiln.infer.turns import fit_history
from paperkiln.lab.score import score_text
from paperkiln.train.tinychat import corpus_text
from paperkiln.web.chat import Chat

__all__ = ["modules"]  # a fixture

PACKED = "Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 IQ4_NL Q2_K Q3_K Q4_K Q5_K Q6_K".split()
LARGER = {"attn_v.weight": "Q6_K", "ffn_down.weight": "Q6_K", "output.weight": "Q6_K"}
# What llama.cpp names by the first letter and the size: most weights in one type, some in a larger.
MIXES: dict[str, str | dict[str, str]] = {
    kind: kind for kind in ("F32", "F16", "BF16", *PACKED)
} | {
    "Q4_K_M": LARGER | {"": "Q4_K"},
    "Q5_K_M": LARGER | {"": "Q5_K"},
    "Q3_K_M": LARGER | {"attn_v.weight": "Q5_K", "ffn_down.weight": "Q4_K", "": "Q3_K"},
    "Q2_K, as is": LARGER | {"attn_v.weight": "Q4_K", "ffn_down.weight": "Q3_K", "": "Q2_K"},
    "Q4_0, as is": {"output.weight": "Q6_K", "token_embd.weight": "Q8_0", "": "Q4_0"},
    # Where a row is no multiple of 256, as in SmolLM2-135M, llama.cpp takes the next larger type.
    "Q4_K_M, rows of 576": {"ffn_down.weight": "Q6_K", "attn_v.weight": "Q8_0", "": "Q5_0"},
    "Q3_K_M, rows of 576": {"ffn_down.weight": "Q4_K", "attn_v.weight": "Q5_1", "": "IQ4_NL"},
}
SMOLLM = {"D": 576, "L": 1, "H": 9, "K": 3, "F": 1536}
TEXT = corpus_text(300, 1)
TINY = {"D": 32, "H": 2, "K": 2, "F": 32}

ZEPHYR = (  # TinyLlama-1.1B-Chat-v1.0
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + "
    "message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n"
    "{{ '<|system|>\n' + message['content'] + eos_token }}\n"
    "{% elif message['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + message['content'] + "
    "eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n"
    "{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}"
)
LLAMA_2 = (
    "{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ bos_token + '[INST] ' + message['content'].strip() + ' [/INST]' }}"
    "{% elif message['role'] == 'assistant' %}"
    "{{ ' '  + message['content'].strip() + ' ' + eos_token }}{% endif %}{% endfor %}"
)
MISTRAL = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}"
    "{{ '[INST] ' + message['content'] + ' [/INST]' }}{% elif message['role'] == 'assistant' %}"
    "{{ message['content'] + eos_token}}{% endif %}{% endfor %}"
)
CHATML = (
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
JINJA = {"zephyr": ZEPHYR, "llama-2": LLAMA_2, "mistral": MISTRAL, "chatml": CHATML}
SMOLLM2 = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
QWEN2_5 = (  # without its tools
    "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {{- messages[0]['content'] }}\n"
    "    {{- '<|im_end|>\\n' }}\n{%- else %}\n    {%- if messages[0]['role'] == 'system' %}\n"
    "        {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}\n"
    "    {%- else %}\n        {{- '<|im_start|>system\\nYou are Qwen, created by Alibaba Cloud. "
    "You are a helpful assistant.<|im_end|>\\n' }}\n    {%- endif %}\n{%- endif %}\n"
    "{%- for message in messages %}\n    {%- if (message.role == 'user') or (message.role == "
    "'system' and not loop.first) or (message.role == 'assistant') %}\n        "
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
    "    {%- endif %}\n{%- endfor %}\n{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n{%- endif %}\n"
)
LLAMA_3 = (
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}"
    "{{ content }}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
LLAMA_3_2 = (  # without its tools
    "{{- bos_token }}\n{%- if not date_string is defined %}\n"
    "    {%- if strftime_now is defined %}\n"
    '        {%- set date_string = strftime_now("%d %b %Y") %}\n    {%- else %}\n'
    '        {%- set date_string = "26 Jul 2024" %}\n    {%- endif %}\n{%- endif %}\n'
    "{%- if messages[0]['role'] == 'system' %}\n"
    "    {%- set system_message = messages[0]['content']|trim %}\n"
    '    {%- set messages = messages[1:] %}\n{%- else %}\n    {%- set system_message = "" %}\n'
    '{%- endif %}\n{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}\n'
    '{{- "Cutting Knowledge Date: December 2023\\n" }}\n'
    '{{- "Today Date: " + date_string + "\\n\\n" }}\n{{- system_message }}\n{{- "<|eot_id|>" }}\n'
    "{%- for message in messages %}\n    {{- '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}\n{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}\n{%- endif %}\n"
)
LLAMA_3_1 = LLAMA_3_2.replace('strftime_now("%d %b %Y")', '"26 Jul 2024"').replace(
    "strftime_now is defined", "true"
)
BPE_JINJA = {
    "ChatML": ("smollm", "chatml", CHATML), "SmolLM2": ("smollm", "chatml", SMOLLM2),
    "Qwen2.5": ("qwen2", "chatml", QWEN2_5), "Llama 3": ("llama-bpe", "llama-3", LLAMA_3),
    "Llama 3.1": ("llama-bpe", "llama-3", LLAMA_3_1),
    "Llama 3.2": ("llama-bpe", "llama-3", LLAMA_3_2),
}  # fmt: skip
UNKNOWN_JINJA = "{% for m in messages %}### {{ m['role'] }}: {{ m['content'] }}{% endfor %}"


@pytest.fixture(scope="module")
def vocabulary() -> Any:
    return train_vocabulary(TEXT, 601)  # not a multiple of four


@pytest.fixture
def make(vocabulary: Any, tmp_path: Path) -> Any:
    """Return `make(kinds, template, **shape)`, the path of a random llama."""

    def write(kinds: str | dict[str, str] = "F32", template: str = "", **shape: int) -> Path:
        return write_llama(
            tmp_path / "m.gguf", vocabulary_keys(vocabulary, template), kinds, **shape
        )

    return write


class TestWeights:
    @pytest.mark.parametrize("mix", MIXES)
    def test_three_engines_say_the_same(self, mix: str, make: Any, modules: list[Path]) -> None:
        path = make(MIXES[mix], **SMOLLM if "576" in mix else {})
        theirs = load_run(path)
        ids = theirs.tokenizer.begin(theirs.tokenizer.encode(TEXT[:200]))
        expected = theirs.decoder.prefill(ids, theirs.decoder.new_cache(), all_logits=True)
        text = numpy_tokens(theirs, ids[:9], 64, GREEDY)
        for module in modules:
            ours = open_in_ember(module, path)
            check_embedding(ours, theirs.params["embed.weight"])
            assert ours.tokenizer.encode(TEXT) == theirs.tokenizer.encode(TEXT)
            for i, token in enumerate(ids):
                ours.read([token])
                np.testing.assert_allclose(ours.logits(), expected[i], rtol=0, atol=1e-3)
            one_by_one = ours.logits()
            ours.keep_common([-1])
            ours.read(ids)
            assert ours.logits() == one_by_one
            assert ember_tokens(ours, ids[:9], 64, GREEDY) == text
        with llama_cpp(path) as post:
            theirs_cpp = greedy_llama_cpp(post, ids[:9], 64)
        if mix == "F32":
            assert theirs_cpp == text
        # With other weights llama.cpp rounds activations, to 8 bits for the packed ones: where two
        # tokens are nearly as likely it may take the other. Along its own text each token must be
        # about as likely as the best here. (Logits are a normal distribution, the best above 3.)
        ours.keep_common([-1])
        ours.read(ids[:9])
        for token in theirs_cpp:
            logits = ours.logits()
            assert logits[token] > max(logits) - 0.3
            ours.read([token])

    @pytest.mark.parametrize("n", [1, 2, 3, 31, 32, 33, 70])
    def test_blocks_of_any_length(self, n: int, make: Any, modules: list[Path]) -> None:
        ours = open_in_ember(modules[0], make(MIXES["Q4_K_M"], L=1))
        ids = [(37 * i + 11) % 601 for i in range(n)]
        ours.read(ids)
        together = ours.logits()
        ours.keep_common([-1])
        for token in ids:
            ours.read([token])
        assert ours.logits() == together

    @pytest.mark.parametrize("n_blocks", [1, 3])
    @pytest.mark.parametrize("kind", PACKED)
    def test_rows_of_any_number_of_blocks(
        self, kind: str, n_blocks: int, make: Any, modules: list[Path]
    ) -> None:
        block = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]
        path = make(kind, L=1, D=n_blocks * block, H=2, K=1, F=block)
        theirs = load_run(path)
        expected = theirs.decoder.prefill([1, 5, 600], theirs.decoder.new_cache())
        for module in modules:
            ours = open_in_ember(module, path)
            check_embedding(ours, theirs.params["embed.weight"])
            ours.read([1, 5, 600])
            np.testing.assert_allclose(ours.logits(), expected, rtol=0, atol=1e-3)

    @pytest.mark.parametrize("kind", sorted({*MIXES} & set(gguf.GGMLQuantizationType.__members__)))
    def test_numpy_reads_them_as_the_package_does(self, kind: str) -> None:
        x = np.random.default_rng(0).normal(size=(5, 512)).astype(np.float32)
        data = quantise(x, kind)
        found = dequantize(
            TensorInfo("x", x.shape, kind.lower(), 0, data.nbytes), data.tobytes(), "here"
        )
        expected = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[kind])
        np.testing.assert_array_equal(found, expected)

    @pytest.mark.parametrize("kind", PACKED)
    def test_any_bytes_do_no_harm(self, kind: str, make: Any, modules: list[Path]) -> None:
        path = make(kind, L=1)
        data, header = bytearray(path.read_bytes()), read_header(path)
        rng = np.random.default_rng(0)
        for info in header.tensors.values():
            data[info.offset : info.offset + info.n_bytes] = rng.bytes(info.n_bytes)
        ours = open_in_ember(modules[0], bytes(data))
        ours.read([1, 2, 3] * 20)
        with pytest.raises(PaperkilnError, match="not finite"):
            ember_tokens(ours, [1], 5, GREEDY)

    @pytest.mark.parametrize("kind", PACKED)
    def test_a_row_that_ends_within_a_block(
        self, kind: str, make: Any, modules: list[Path]
    ) -> None:
        path = make("F32", L=1, D=144, H=2, K=1, F=256)
        change_type(path, gguf.GGMLQuantizationType[kind])
        for open_it in (load_run, lambda path: open_in_ember(modules[0], path)):
            with pytest.raises(PaperkilnError, match=f"{kind.lower()} needs rows that are"):
                open_it(path)

    def test_a_type_that_neither_reads(self, make: Any, modules: list[Path]) -> None:
        path = make("F32", L=1)
        change_type(path, gguf.GGMLQuantizationType.I16)
        with pytest.raises(
            PaperkilnError, match="is i16, and this engine reads f32, f16, bf16, q8_0"
        ):
            open_in_ember(modules[0], path)
        with pytest.raises(PaperkilnError, match="is i16, which is not read here"):
            load_run(path)


def change_type(path: Path, kind: int) -> None:
    """Write another type into the header where it says what one tensor is."""
    name, data = b"blk.0.attn_q.weight", path.read_bytes()
    at = data.index(name) + len(name) + 4 + 16  # two dimensions
    path.write_bytes(data[:at] + kind.to_bytes(4, "little") + data[at + 4 :])


def check_embedding(model: host.Ember, embedding: np.ndarray) -> None:
    """The engine unpacks weights to the very bits that the gguf package gives."""
    at = model.addresses.logits
    for token in range(0, len(embedding), 37):
        model._machine.call("ember_embed", at, token)
        row = np.frombuffer(model._machine.read(at, 4 * embedding.shape[1]), np.float32)
        np.testing.assert_array_equal(row.view(np.uint32), embedding[token].view(np.uint32))


TURNS = [
    ("user", " Hello, who are you? "), ("assistant", "I am a cat.\n"), ("user", "What do you do?"),
]  # fmt: skip


class TestChat:
    @pytest.mark.parametrize("name", JINJA)
    def test_prompts_are_llama_cpps(self, name: str, make: Any) -> None:
        path = make(template=JINJA[name], L=1)
        tokenizer = load_run(path).tokenizer
        assert template_of(tokenizer).name == name
        trims = template_of(tokenizer).trims
        turns = [(role, text.strip() if trims else text) for role, text in TURNS]
        messages = [{"role": role, "content": text} for role, text in turns]
        with llama_cpp(path) as post:
            prompt = post("/apply-template", {"messages": messages})["prompt"]
            body = {"content": prompt, "add_special": True, "parse_special": True}
            expected = post("/tokenize", body)["tokens"]
        assert encode_chat(tokenizer, turns, add_generation_prompt=True) == expected

    @pytest.mark.parametrize("name", BPE_JINJA)
    def test_prompts_of_byte_level_files_are_llama_cpps(self, name: str, tmp_path: Path) -> None:
        cut, template, jinja = BPE_JINJA[name]
        specials = LLAMA3_TOKENS if template == "llama-3" else CHATML_TOKENS
        keys = bpe_keys(train_bpe(cut, specials=specials), cut)
        path = write_llama(
            tmp_path / "m.gguf", keys | {"tokenizer.chat_template": jinja}, L=1, **TINY
        )
        tokenizer = load_run(path).tokenizer
        assert template_of(tokenizer).name == template
        with llama_cpp(path) as post:
            for system in ("", "Be brief.\nSpeak like a kiln."):
                turns = [("system", system)] * bool(system) + TURNS
                if template == "chatml":  # which keeps the space around a text
                    turns = [(role, text.strip()) for role, text in turns]
                messages = [{"role": role, "content": text} for role, text in turns]
                prompt = post("/apply-template", {"messages": messages})["prompt"]
                body = {"content": prompt, "add_special": True, "parse_special": True}
                found = post("/tokenize", body)["tokens"]
                # llama.cpp puts a BOS before one that the template wrote, and warns of it.
                expected = found[1:] if found[0] == found[1] else found
                turns = [turn for turn in turns if turn[0] != "system"]
                ids = encode_chat(tokenizer, turns, system=system, add_generation_prompt=True)
                assert ids == expected, prompt
        ends, stops = reply_ends(tokenizer)
        names = {tokenizer.tokens[i] for i in ends}
        if template == "llama-3":
            assert names == {"<|end_of_text|>", "<|eot_id|>", "<|start_header_id|>"}
            assert stops == ["<|eom_id|>"]
        else:
            assert names == set(CHATML_TOKENS)
        assert not names & set(stops)

    @pytest.mark.parametrize("name", ["zephyr", "chatml"])
    def test_a_system_message_in_front(self, name: str, make: Any) -> None:
        path = make(template=JINJA[name], L=1)
        tokenizer = load_run(path).tokenizer
        messages = [{"role": r, "content": t} for r, t in [("system", "Be kind."), *TURNS]]
        with llama_cpp(path) as post:
            prompt = post("/apply-template", {"messages": messages})["prompt"]
            body = {"content": prompt, "add_special": True, "parse_special": True}
            expected = post("/tokenize", body)["tokens"]
        ids = encode_chat(tokenizer, TURNS, system="Be kind.", add_generation_prompt=True)
        assert ids == expected

    @pytest.mark.parametrize("template", ["", LLAMA_2, MISTRAL, UNKNOWN_JINJA])
    def test_no_place_for_a_system_message(
        self, template: str, make: Any, modules: list[Path]
    ) -> None:
        path = make(template=template, L=1)
        said = "no place for a system message|takes no system message"
        chat = Chat(open_in_ember(modules[0], path), host.generate, "m.gguf")
        with pytest.raises(PaperkilnError, match=said):
            chat.begin([["user", "hi"]], {"system": "Be kind."})
        chat.begin([["user", "hi"]], {"system": "  "})
        if template:
            model = load_run(path)
            with pytest.raises(PaperkilnError, match=said):
                ChatSession(model.decoder, model.tokenizer, system="Be kind.")

    def test_a_system_message_stays_while_turns_go(self, make: Any) -> None:
        model = load_run(make(template=ZEPHYR, L=1))
        session = ChatSession(
            model.decoder, model.tokenizer, GREEDY, max_new_tokens=8, system="Be kind."
        )
        start = encode_frame(model.tokenizer, "Be kind.")[0]
        for text in ("word " * 500, "hi", "word " * 15, "and you?"):
            list(session.reply(text))
            ids, _, _ = fit_history(model.tokenizer, session.history, "well?", 120, session.system)
            assert ids[: len(start)] == start
        with pytest.raises(PaperkilnError, match=r"leaves no room in the context.*shorten it"):
            ChatSession(model.decoder, model.tokenizer, system="word " * 500)

    def test_a_template_that_is_not_known(self, make: Any, modules: list[Path]) -> None:
        model = open_in_ember(modules[0], make(template=UNKNOWN_JINJA, L=1))
        chat = Chat(model, host.generate, "m.gguf")
        assert chat.about()["template"] == "plain"
        begun = chat.begin([["user", "hi"]], {"length": 8, "temperature": 0})
        assert "does not know this model's chat template" in begun["note"]
        ids = encode_chat(model.tokenizer, [("user", "hi")], add_generation_prompt=True)
        assert begun["prompt_tokens"] == len(ids)
        assert model.tokenizer.decode(ids) == "User: hi\nAssistant:"
        turns = [["user", "hi"], ["assistant", "yes"], ["user", "no"]]
        assert chat.begin(turns, {"length": 8})["note"] == ""
        assert reply_ends(model.tokenizer) == ({2}, ["\nUser:"])

    def test_a_model_without_a_template_goes_on_with_the_text(
        self, make: Any, modules: list[Path]
    ) -> None:
        model = open_in_ember(modules[0], make(L=1))
        chat = Chat(model, host.generate, "m.gguf")
        assert not chat.about()["talks"]
        begun = chat.begin([["user", "once upon"]], {"length": 8})
        assert begun["prompt_tokens"] == len(model.tokenizer.encode("once upon"))
        chat.step()
        assert model.tokens[: begun["prompt_tokens"] + 1] == model.tokenizer.begin(
            model.tokenizer.encode("once upon")
        )
        with pytest.raises(PaperkilnError, match="it cannot chat, only sample"):
            ChatSession(None, model.tokenizer)

    def test_the_page_and_the_terminal_say_the_same(self, make: Any, modules: list[Path]) -> None:
        path = make(template=LLAMA_2)
        model, theirs = open_in_ember(modules[0], path), load_run(path)
        session = ChatSession(theirs.decoder, theirs.tokenizer, GREEDY, max_new_tokens=20)
        chat = Chat(model, host.generate, "m.gguf")
        messages: list[tuple[str, str]] = []
        for question in ("Good morning!", "And you?"):
            said = "".join(session.reply(question))
            messages.append(("user", question))
            chat.begin(messages, {"length": 20, "temperature": 0})
            text, done = "", None
            while done is None:
                answer = chat.step()
                text, done = text + answer["text"], answer.get("done")
            messages.append(("assistant", text))
            assert text == said
            assert text == text.lstrip()
        assert session.history == messages

    def test_a_long_message_keeps_its_end(self, make: Any) -> None:
        for template in (*JINJA.values(), UNKNOWN_JINJA):
            model = load_run(make(template=template, L=1))
            session = ChatSession(model.decoder, model.tokenizer, GREEDY, max_new_tokens=8)
            pieces = session.reply("word " * 500 + "the end?")
            next(pieces)
            assert "are cut" in session.note
            pieces.close()

    def test_no_message_closes_its_turn(self, make: Any) -> None:
        tokenizer = load_run(make(template=ZEPHYR, L=1)).tokenizer
        ids = encode_chat(tokenizer, [("user", "hi</s>\n<s>")], add_generation_prompt=True)
        assert (ids.count(1), ids.count(2)) == (1, 1)

    def test_a_huge_template_is_looked_through_at_once(self, make: Any) -> None:
        tokenizer = load_run(make(L=1)).tokenizer
        tokenizer.chat_template = "<|user|>\n" * 200_000
        assert template_of(tokenizer) is PLAIN
        tokenizer.chat_template = "<|im_start|>system\n" * 200_000
        assert template_of(tokenizer).preset is None


def test_a_text_is_scored_whole_after_the_token_that_begins_it(make: Any, tmp_path: Path) -> None:
    path, text = make(), tmp_path / "text.txt"
    text.write_text(TEXT[:300], encoding="utf-8")
    score = score_text(str(path), str(text))
    model = load_run(path)
    ids = model.tokenizer.begin(model.tokenizer.encode(TEXT[:300]))
    assert ids[0] == 1
    logits = model.decoder.prefill(ids[:-1], model.decoder.new_cache(), all_logits=True)
    expected = (
        np.logaddexp.reduce(logits.astype(float), axis=1) - logits[range(len(ids) - 1), ids[1:]]
    )
    assert (score["n_targets"], score["n_bytes"]) == (len(ids) - 1, len(TEXT[:300].encode()))
    assert score["loss"] == pytest.approx(expected.mean(), rel=1e-5)
    bits = expected.sum() / np.log(2) / score["n_bytes"]
    assert score["bits_per_byte"] == pytest.approx(bits, rel=1e-5)


def test_exported_again_it_is_the_same_model(
    make: Any, tmp_path: Path, modules: list[Path]
) -> None:
    path = make("Q8_0", ZEPHYR)
    model = load_run(path)
    out = tmp_path / "again.gguf"
    report = write_gguf(out, model.config, model.params, model.tokenizer, dtype="q8_0")
    assert report.architecture == "llama"
    ids = model.tokenizer.begin(model.tokenizer.encode("Good morning"))
    ours = open_in_ember(modules[0], out)
    assert template_of(ours.tokenizer).name == "zephyr"
    text = numpy_tokens(model, ids, 30, GREEDY)
    assert ember_tokens(ours, ids, 30, GREEDY) == text
    with llama_cpp(out) as post:
        assert post("/tokenize", {"content": TEXT[:300], "add_special": True})["tokens"] == (
            model.tokenizer.begin(model.tokenizer.encode(TEXT[:300]))
        )


@pytest.mark.parametrize("name", ["SmolLM2", "Llama 3"])
def test_a_hugging_face_folder_chats_like_the_gguf(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    cut, template, jinja = BPE_JINJA[name]
    specials = LLAMA3_TOKENS if template == "llama-3" else CHATML_TOKENS
    keys = bpe_keys(train_bpe(cut, specials=specials), cut) | {"tokenizer.chat_template": jinja}
    path = write_llama(tmp_path / "m.gguf", keys, L=1, **TINY)
    export_model(path, "hf", "f32", str(tmp_path / "hf"))
    if name == "Llama 3":  # where transformers 5 writes it
        config = json.loads((tmp_path / "hf" / "tokenizer_config.json").read_text())
        (tmp_path / "hf" / "chat_template.jinja").write_text(config.pop("chat_template"))
        (tmp_path / "hf" / "tokenizer_config.json").write_text(json.dumps(config))
    model, folder = load_run(path), load_run(tmp_path / "hf")
    ids = encode_chat(model.tokenizer, TURNS, system="Be kind.", add_generation_prompt=True)
    assert template_of(folder.tokenizer).name == template
    assert ids == encode_chat(
        folder.tokenizer, TURNS, system="Be kind.", add_generation_prompt=True
    )
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    assert theirs("It's 12.").input_ids == folder.tokenizer.begin(
        folder.tokenizer.encode("It's 12.")
    )
    turns = [("system", "Be kind."), *TURNS]
    messages = [{"role": role, "content": text} for role, text in turns]
    found = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    assert found == ids
