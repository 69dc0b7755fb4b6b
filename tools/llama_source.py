"""llama.cpp as PyPI has it: the source package of llama-cpp-python, which brings all of it."""

import pathlib
import re
import subprocess
import sys
import tarfile

# Of the same release as the library in llama_oracle.py.
VERSION = "0.3.36"


def pip(*words):
    subprocess.run([sys.executable, "-m", "pip", *words, "-q", "--disable-pip-version-check"], check=True)


def source_package(folder):
    """Fetched into the folder; a second call finds it there."""
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / f"llama_cpp_python-{VERSION}.tar.gz"
    if not package.exists():
        pip("install", "scikit-build-core")
        pip("download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", f"llama-cpp-python=={VERSION}",
            "-d", str(folder))
    return package


def extract(package, pattern, target):
    """Files of llama.cpp whose path matches; its first group is where under the target they go."""
    with tarfile.open(package) as source:
        for member in source:
            found = re.search(r"vendor/llama\.cpp/" + pattern, member.name)
            if found and member.isfile():
                path = pathlib.Path(target) / found[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(source.extractfile(member).read())
