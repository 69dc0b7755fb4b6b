"""A model from its file to the machine that holds it, and a model out of a job."""

import hashlib
import json
import struct
import unittest

from support import TWO, FleetCase


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def gguf(layers=4, number=1, count=1):
    """A small model of one architecture: header, and weights of zeros."""
    pairs = [pair("general.architecture", 8, text("llama")), pair("general.license", 8, text("mit"))]
    for key, value in [("block_count", layers), ("embedding_length", 256), ("context_length", 4096),
                       ("attention.head_count", 4), ("attention.head_count_kv", 2)]:
        pairs.append(pair(f"llama.{key}", 4, struct.pack("<I", value)))
    if count > 1:
        pairs += [pair("split.no", 2, struct.pack("<H", number - 1)), pair("split.count", 2, struct.pack("<H", count))]
    tensors, offset = [], 0
    for layer in range(layers):
        tensors.append(text(f"blk.{number}{layer}.w") + struct.pack("<IQQIQ", 2, 256, 256, 8, offset))
        offset += 256 * 256 // 32 * 34
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + bytes(offset)


class Models(FleetCase):
    nodes = TWO

    def add(self, path, *words, **options):
        return self.fleet.zedctl("model", "add", path, "--node", "alpha", *words, **options)

    def test_a_model_from_its_file_to_where_it_fits(self):
        self.files.mkdir(exist_ok=True)
        whole = self.files / "tiny.gguf"
        whole.write_bytes(gguf())
        done = self.fleet.do("model", "show", whole, "--ctx", "1024", "--kv", "q8_0")
        self.assert_says(done, "q8_0, 8.50 bits per weight", "llama", "262 K", "mit", "1024 tokens, q8_0 cache")

        done = self.add(whole, "--name", "tiny", status=0)
        self.assert_says(done, "models/tiny@v1 on alpha", "needs vram:1GiB")
        shown = self.fleet.ask("model", "show", "tiny")
        properties = shown["model"]["properties"]
        self.assertEqual(properties["sha256"], hashlib.sha256(whole.read_bytes()).hexdigest())
        self.assertEqual((properties["format"], properties["quantized"]), ("gguf", "q8_0"))
        self.assertEqual(shown["memory"]["total"], sum(shown["memory"][part] for part in
                         ("weights", "projector", "cache", "compute", "overhead")))
        fits = self.fleet.ask("fit", "tiny")
        self.assertTrue(any(row["whole"] for row in fits["nodes"]), fits)
        self.assertEqual((self.fleet.pool("alpha").exists(), self.add(whole, "--name", "tiny").returncode), (True, 1))

        part = self.files / "split-00001-of-00002.gguf"
        part.write_bytes(gguf(number=1, count=2))
        self.assert_says(self.add(part, "--name", "split", status=4), "part 2 of 2 is missing")
        (self.files / "split-00002-of-00002.gguf").write_bytes(gguf(number=2, count=2))
        self.add(part, "--name", "split", status=0)
        self.assertEqual(self.fleet.ask("model", "show", "split")["model"]["properties"]["parameters"], str(8 * 65536))

        cut = self.files / "cut.gguf"
        cut.write_bytes(gguf()[:-100])
        self.assert_says(self.add(cut, "--name", "cut", status=1), "cut.gguf", "was cut off")
        names = [row["name"] for row in self.fleet.ask("model", "ls")["models"]]
        self.assertEqual(sorted(names), ["split", "tiny"], "nothing is left of what failed")

    def test_a_model_out_of_a_job(self):
        self.dispatch(self.counter(epochs=2))
        self.fleet.wait_state(("succeeded",))
        done = self.fleet.do("model", "register", "job@epoch-1", "--name", "counted", "--alias", "production")
        self.assert_says(done, "models/counted@v1")
        self.fleet.do("model", "register", "job", "--name", "counted")
        row = self.fleet.ask("model", "show", "counted@production")["model"]
        self.assertEqual((row["version"], row["properties"]["source"]), ("1", "jobs/job@epoch-1"))
        self.fleet.do("model", "alias", "counted@2", "production")
        self.assertEqual(self.fleet.ask("model", "show", "counted@production")["model"]["version"], "2")
        self.assert_says(self.fleet.do("lineage", "counted@1"), "made from", "job job@epoch-1")
        self.assert_says(self.fleet.zedctl("model", "rm", "counted@2", "--yes", status=5), "alias production")
        self.fleet.do("model", "rm", "counted@1", "--yes")
        left = [row["version"] for row in self.fleet.ask("models")["models"]]
        self.assertEqual(left, ["2"], json.dumps(left))


if __name__ == "__main__":
    unittest.main()
