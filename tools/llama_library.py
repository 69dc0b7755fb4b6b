"""llama.cpp as a library, built by the authors of node-llama-cpp: loads, quantises, tells sizes."""

import ctypes
import pathlib
import platform
import re
import subprocess
import tarfile
from ctypes import POINTER, Structure, c_bool, c_char_p, c_float, c_int32, c_size_t, c_uint32, c_uint64, c_void_p

# The structures below are this release's (llama.h of llama.cpp 0.5.0): a package never changes.
VERSION = "3.22.1"
MACHINES = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}
MIB = 1 << 20


def fields(kind, names):
    return [(name, kind) for name in names.split()]


class ModelParams(Structure):
    _fields_ = [
        *fields(c_void_p, "devices overrides"),
        *fields(c_int32, "n_gpu_layers split_mode load_mode lazy_mode main_gpu"),
        *fields(c_void_p, "tensor_split progress progress_data kv_overrides"),
        *fields(c_bool, "vocab_only check_tensors use_extra_bufts no_host no_alloc load_mtp"),
    ]


class ContextParams(Structure):
    _fields_ = [
        *fields(c_uint32, "n_ctx n_batch n_ubatch n_seq_max n_rs_seq n_outputs_max n_outputs_max_per_seq"),
        *fields(c_int32, "n_threads n_threads_batch ctx_type rope_scaling pooling attention flash_attn"),
        *fields(c_float, "rope_base rope_scale yarn_ext yarn_attn yarn_fast yarn_slow"), ("yarn_ctx", c_uint32),
        ("defrag", c_float), *fields(c_void_p, "cb_eval cb_eval_data"), *fields(c_int32, "type_k type_v"),
        *fields(c_void_p, "abort abort_data"),
        *fields(c_bool, "embeddings offload_kqv no_perf op_offload swa_full kv_unified"),
        ("samplers", c_void_p), ("n_samplers", c_size_t), ("ctx_other", c_void_p),
    ]


class QuantizeParams(Structure):
    _fields_ = [
        *fields(c_int32, "nthread ftype output_type embedding_type"),
        *fields(c_bool, "allow_requantize quantize_output only_copy pure keep_split dry_run"),
        *fields(c_void_p, "imatrix kv_overrides tt_overrides prune_layers"), ("max_buf_size", c_size_t),
    ]


SIGNATURES = {
    "llama_model_default_params": (ModelParams, []),
    "llama_context_default_params": (ContextParams, []),
    "llama_model_quantize_default_params": (QuantizeParams, []),
    "llama_model_load_from_file": (c_void_p, [c_char_p, ModelParams]),
    "llama_init_from_model": (c_void_p, [c_void_p, ContextParams]),
    "llama_model_quantize": (c_uint32, [c_char_p, c_char_p, POINTER(QuantizeParams)]),
    "llama_model_size": (c_uint64, [c_void_p]),
    "llama_model_n_params": (c_uint64, [c_void_p]),
    "llama_model_n_ctx_train": (c_int32, [c_void_p]),
    "llama_model_ftype": (c_int32, [c_void_p]),
    "llama_ftype_name": (c_char_p, [c_int32]),
    "llama_model_meta_val_str": (c_int32, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "llama_free": (None, [c_void_p]),
    "llama_model_free": (None, [c_void_p]),
}


def fetch(folder):
    """The folder of the library's files; a second call finds it there."""
    target = folder / f"llama-{VERSION}"
    if not target.exists():
        name = f"@node-llama-cpp/{MACHINES[platform.machine()]}@{VERSION}"
        packed = subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True, stdout=subprocess.PIPE,
                                text=True)
        fresh = folder / f"llama-{VERSION}.part"
        fresh.mkdir(exist_ok=True)
        with tarfile.open(folder / packed.stdout.split()[-1]) as package:
            for member in package:
                if member.isfile() and member.name.endswith(".so"):
                    (fresh / pathlib.Path(member.name).name).write_bytes(package.extractfile(member).read())
        (folder / packed.stdout.split()[-1]).unlink()
        fresh.rename(target)
    return target


def name_of(ftype):
    """ "Q4_K - Medium" as "q4_k_m", "IQ4_XS - 4.25 bpw" as "iq4_xs", "all F32" as "f32"; as llama-quantize calls them."""
    name, _, size = ftype.removeprefix("all ").partition(" - ")
    suffix = {"Small": "_s", "Medium": "_m", "Large": "_l"}.get(size, "")
    known = name.split()[0].lower() + suffix
    return "q2_k" if known == "q2_k_m" else known


class Llama:
    def __init__(self, folder):
        files = fetch(folder)
        ctypes.CDLL(str(files / "libggml-base.so"), ctypes.RTLD_GLOBAL)
        ggml = ctypes.CDLL(str(next(files.glob("libggml.v*.so"))), ctypes.RTLD_GLOBAL)
        self.lib = ctypes.CDLL(str(next(files.glob("libllama.v*.so"))))
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.log = []
        kind = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)
        self.listener = kind(lambda level, text, data: self.log.append(text.decode(errors="replace")))
        self.lib.llama_log_set(self.listener, None)
        ggml.ggml_backend_load_all_from_path(str(files).encode())
        context, quantize = self.lib.llama_context_default_params(), self.lib.llama_model_quantize_default_params()
        known = (context.n_batch, context.type_v, context.offload_kqv, quantize.max_buf_size)
        assert known == (2048, 1, True, 8 << 30), f"the structures are another release's: {known}"

    def fail(self, what):
        raise ValueError(f"llama.cpp cannot {what}: {''.join(self.log)[-300:].strip()}")

    def quantise(self, source, target, ftype, keep_split=False):
        self.log.clear()
        params = self.lib.llama_model_quantize_default_params()
        params.ftype, params.nthread, params.keep_split = ftype, 1, keep_split
        if self.lib.llama_model_quantize(str(source).encode(), str(target).encode(), ctypes.byref(params)) != 0:
            self.fail(f"quantise {source.name} to {ftype}")

    def said(self, path, caches):
        """What it tells of a file, and how much the caches take, each (context, sequences, type)."""
        self.log.clear()
        params = self.lib.llama_model_default_params()
        params.n_gpu_layers = 0
        model = self.lib.llama_model_load_from_file(str(path).encode(), params)
        if not model:
            self.fail(f"load {path.name}")
        word = ctypes.create_string_buffer(128)
        self.lib.llama_model_meta_val_str(model, b"general.architecture", word, len(word))
        said = {
            "architecture": word.value.decode(), "bytes": self.lib.llama_model_size(model),
            "parameters": self.lib.llama_model_n_params(model), "context": self.lib.llama_model_n_ctx_train(model),
            "label": name_of(self.lib.llama_ftype_name(self.lib.llama_model_ftype(model)).decode()),
        }
        said.update({cache: self.cache(model, path, *cache) for cache in caches})
        self.lib.llama_model_free(model)
        return said

    def cache(self, model, path, context, sequences, kind):
        """Bytes of each part, each known to within half of a hundredth of a MiB."""
        self.log.clear()
        params = self.lib.llama_context_default_params()
        params.n_ctx, params.n_seq_max = context * sequences, sequences
        params.n_threads = params.n_threads_batch = params.flash_attn = 1
        params.swa_full, params.kv_unified = False, True
        params.type_k = params.type_v = {"f16": 1, "q8_0": 8}[kind]
        made = self.lib.llama_init_from_model(model, params)
        if not made:
            self.fail(f"make a cache for {path.name}")
        self.lib.llama_free(made)
        return [float(size) * MIB for size in re.findall(r"(?:KV|RS) buffer size = +([\d.]+) MiB", "".join(self.log))]
