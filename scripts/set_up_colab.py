"""Install what the notebooks need into the Python that runs this script, as their first cell asks.

On Colab a notebook cannot choose its own environment. The packages that its kernel consists of
stay as they are, and so does its torch, which fits its GPU. Everywhere else, use `make`.
"""

import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNEL = {"jupyterlab", "ipykernel", "ipython"}


def install(*arguments: str | Path) -> None:
    """Call pip; its errors are printed, and end the script."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", *arguments]
    subprocess.run(command, check=True)


def missing_pins() -> list[str]:
    """The pinned packages of the project without those of the kernel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    kept = {name for name in (*KERNEL, "torch") if find_spec(name)}
    pins = project["project"]["dependencies"]
    return [pin for pin in pins if pin.partition("==")[0] not in kept]


if __name__ == "__main__":
    install(*missing_pins())
    install("--no-deps", "--requirement", ROOT / "requirements-no-deps.lock")
    install("--no-deps", "--editable", ROOT)
