#!/usr/bin/env python3
"""Model files by llama.cpp's own converter and quantiser, read by zedctl and by llama.cpp itself.

    llama_oracle.py ZEDCTL [FOLDER]    packages are fetched into FOLDER (build/models)

Small models with random weights, made by transformers, go through convert_hf_to_gguf.py and llama_model_quantize().
What zedctl says of each file, and of the folder it was made from, has to be what llama.cpp says: architecture,
bytes, parameters, label, context, and the size of the cache to within what llama.cpp prints of it.

Needs torch, transformers, sentencepiece and numpy; npm for the library (11 MB).
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from llama_library import MIB, Llama
from tiny_models import MODELS, Maker

os.environ["GGML_NO_BACKTRACE"] = "1"
ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHES = [(8192, 1, "f16"), (8192, 4, "f16"), (4096, 1, "q8_0")]

# By the number of LLAMA_FTYPE_…. The other iq1, iq2 and iq3 need measurements of how much each weight matters.
QUANTISED = {"q4_0": 2, "q8_0": 7, "q5_1": 9, "q2_k": 10, "q3_k_s": 11, "q3_k_m": 12, "q3_k_l": 13, "q4_k_s": 14,
             "q4_k_m": 15, "q5_k_s": 16, "q5_k_m": 17, "q6_k": 18, "iq4_nl": 25, "iq3_s": 26, "iq4_xs": 30, "tq1_0": 36,
             "tq2_0": 37}
FOR_EXPERTS = {"mxfp4": 38}
WIDELY_QUANTISED = {"llama": QUANTISED, "qwen2": ["q4_k_m", "iq4_xs"], "gemma2": ["q4_k_m", "q5_k_m"],
                    "mixtral": ["q4_k_m", "q6_k", "mxfp4"], "deepseek_v3": ["q4_k_m"], "falcon_h1": ["q4_k_m"]}
TYPES = ["f32", "bf16", "q8_0", "tq2_0"]  # that the converter writes itself


def said_by_zed(zedctl, path, caches):
    said = {}
    for context, sequences, kind in caches or [(8192, 1, "f16")]:
        words = ["--ctx", str(context), "--parallel", str(sequences), "--kv", kind]
        out = subprocess.run([zedctl, "model", "show", "--json", *words, f"{path}"], capture_output=True, text=True)
        if out.returncode != 0:
            raise ValueError(f"zedctl cannot read {path.name}: {out.stdout}{out.stderr}")
        reply = json.loads(out.stdout)
        said[context, sequences, kind] = reply["memory"]["cache"]
    properties = reply["model"]["properties"]
    label = properties.get("quantized", "none")
    return said | {
        "architecture": properties.get("architecture", ""), "bytes": reply["model"]["size"],
        "parameters": int(properties.get("parameters", "0")), "context": int(properties.get("context", "0")),
        "label": properties.get("dtype", "") if label == "none" else label,
    }


def same(theirs, ours):
    if not isinstance(theirs, list):
        return theirs == ours
    return abs(sum(theirs) - ours) <= 0.005 * MIB * len(theirs) + 1


def differences(what, theirs, ours, keys):
    return [f"{what}: {key} is {theirs[key]} for llama.cpp, {ours[key]} for zedctl"
            for key in keys if not same(theirs[key], ours[key])]


class Check:
    def __init__(self, zedctl, maker, llama):
        self.zedctl, self.maker, self.llama = zedctl, maker, llama
        self.files = 0
        self.complaints = []

    def file(self, path, caches=()):
        self.files += 1
        theirs = self.llama.said(path, caches)
        self.complaints += differences(path.name, theirs, said_by_zed(self.zedctl, path, caches), theirs)
        return theirs

    def model(self, name, folder):
        made = self.maker.folder(name, folder)
        path = self.maker.gguf(made, folder / f"{name}-f16.gguf", "--outtype", "f16")
        theirs = self.file(path, CACHES)
        self.source(made, theirs, MODELS[name].get("apart", ()))
        for label in WIDELY_QUANTISED.get(name, []):
            quantised = folder / f"{name}-{label}.gguf"
            self.llama.quantise(path, quantised, (QUANTISED | FOR_EXPERTS)[label])
            self.file(quantised)
        if name == "llama":
            self.converter(made, folder)

    def source(self, made, theirs, apart):
        """The folder that the file was made of says the same."""
        self.files += 1
        keys = {"parameters": "parameters", "context": "context", "cache": CACHES[0]}
        ours = said_by_zed(self.zedctl, made, CACHES[:1])
        compared = [key for word, key in keys.items() if word not in apart]
        self.complaints += differences(f"the folder {made.name}", theirs, ours, compared)

    def converter(self, made, folder):
        """Its other types, and a file in parts, which the quantiser keeps or puts together."""
        for kind in TYPES:
            self.file(self.maker.gguf(made, folder / f"converted-{kind}.gguf", "--outtype", kind))
        self.maker.gguf(made, folder / "split.gguf", "--outtype", "f16", "--split-max-tensors", "16")
        first = min(folder.glob("split-00001-of-*.gguf"))
        self.file(first, CACHES)
        self.llama.quantise(first, folder / "kept", QUANTISED["q4_k_m"], keep_split=True)
        self.file(min(folder.glob("kept-00001-of-*.gguf")))
        self.llama.quantise(first, folder / "whole.gguf", QUANTISED["q4_k_m"])
        self.file(folder / "whole.gguf")

    def models(self, names):
        for name in names:
            with tempfile.TemporaryDirectory(prefix="llama-oracle-") as folder:
                try:
                    self.model(name, pathlib.Path(folder))
                except Exception as error:  # whatever a converter says
                    self.complaints.append(f"{name}: {type(error).__name__}: {error}")


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build/models")
    folder.mkdir(parents=True, exist_ok=True)
    check = Check(sys.argv[1], Maker(folder), Llama(folder))
    check.models(sys.argv[3:] or MODELS)
    print("\n".join(check.complaints) or f"{check.files} files and folders: zedctl and llama.cpp agree")
    return 1 if check.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
