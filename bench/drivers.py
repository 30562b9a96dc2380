#!/usr/bin/env python3
"""The driver that `toolward new` writes, built in each language below target/drivers, for
`cargo bench -p toolward-host --bench languages`."""

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
DRIVERS = TARGET / "drivers"

# Each with the language that `new` takes.
SCAFFOLDS = {"rust": "rust", "js": "js", "js-requests": "js", "python": "python", "go": "go", "c": "c"}
# A driver in C alone, without WASI and with it.
BARE = {"c-bare": "", "c-bare-wasi": "#define WITH_STDIO\n"}


def run(*words, **options):
    return subprocess.run(words, cwd=ROOT, check=True, text=True, **options)


def replace(path, old, new):
    text = path.read_text()
    assert old in text, f"{path}: there is no {old}"
    path.write_text(text.replace(old, new, 1))


def with_requests(bundle):
    """Declares requests, for which `build` takes the engine that has them."""
    replace(bundle / "bundle.toml", '"driver-random"', '"driver-http"')
    tool = bundle / "tools/text.greet/TOOL.md"
    replace(tool, "\nidempotent:", "\nrequires:\n  network: [greetings.example]\nidempotent:")
    driver = bundle / "drivers/text.greet.driver/DRIVER.md"
    replace(driver, "\nkind:", "\nnetwork:\n  egress: [greetings.example]\nkind:")


def main():
    shutil.rmtree(DRIVERS, ignore_errors=True)
    run(ROOT / "xtask/guest-toolchain.sh")
    guest_cargo = Path(os.environ.get("GUEST_TOOLCHAIN_DIR", ROOT / "target/guest-toolchain")) / "guest-cargo"
    environment = {**os.environ, "LANGUAGES_DIR": str(TARGET / "languages")}
    toolchain = run(ROOT / "xtask/languages.sh", env=environment, stdout=subprocess.PIPE).stdout.strip()
    run("cargo", "build", "--locked", "--workspace", "--bin", "toolward")
    toolward = TARGET / "debug/toolward"

    def new(name, language):
        run(toolward, "new", "--id", "text.greet", "--language", language, DRIVERS / name)
        return DRIVERS / name

    def build(bundle):
        run(toolward, "build", "--allow-build", "--guest-cargo", guest_cargo, "--toolchain", toolchain, bundle)

    for name, language in SCAFFOLDS.items():
        bundle = new(name, language)
        if name == "js-requests":
            with_requests(bundle)
        build(bundle)
    source = (ROOT / "host/benches/languages/greet.c").read_text()
    for name, first in BARE.items():
        bundle = new(name, "c")
        (bundle / "driver/driver.c").write_text(first + source)
        (bundle / "driver/toolward/toolward.c").unlink()
        build(bundle)


if __name__ == "__main__":
    main()
