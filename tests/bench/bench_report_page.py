"""Size of a report's page, and how long a browser takes to open it and to sort its tables.

    make bench ONLY=report_page

Two versions answer the same generated openings, five replies a dialog, with ratings and without the
networks, on which the size of a page hardly depends. Every table of the page is opened and sorted
by its first column; times are wall times of Chromium without a window, in which nothing is drawn on
a screen. The bars are 2 MB and 6 MB, and 2 seconds.
"""

import json
import random
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib
import pandas as pd
import record

from lib import ROOT, report
from lib.report import page

REPLIES = (1_000, 100_000)
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
MEASURE = """<script>
addEventListener("load", () => setTimeout(() => {
  const opened = performance.timing.loadEventEnd - performance.timing.navigationStart;
  const start = performance.now();
  document.querySelectorAll("details").forEach((part) => { part.open = true; });
  const heads = document.querySelectorAll("table.dataframe th:first-child button");
  heads.forEach((head) => head.click());
  document.body.getBoundingClientRect();
  const sorted = performance.now() - start;
  document.title = JSON.stringify({opened, sorted, tables: heads.length});
}, 0));
</script>"""


def generated_turns(n_replies: int, seed: int = 0) -> pd.DataFrame:
    """Dialogs of two versions with the same openings, and ratings from 1 to 5."""
    rng = random.Random(seed)
    words = (ROOT / "data" / "sample" / "README.md").read_text("utf-8").split()
    rows = []
    for number in range(n_replies // 10):
        for system in ("old", "new"):
            context = [f"opening {number}"]
            for _ in range(5):
                reply = " ".join(rng.choices(words, k=rng.randint(1, 20)))
                rows.append(
                    {
                        "system": system,
                        "agent": system,
                        "dialog": f"{system}-{number}",
                        "turn": len(context),
                        "context": list(context),
                        "response": reply,
                        "reference": [],
                        "fact": [],
                        "human_overall": float(rng.randint(1, 5)),
                    }
                )
                context += [reply, " ".join(rng.choices(words, k=8))]
    return pd.DataFrame(rows)


def measure(written: str, folder: Path) -> dict[str, float]:
    """Open a page in the browser, sort its tables, and return the milliseconds."""
    file = folder / "page.html"
    # The page's policy would forbid the script that measures.
    free = re.sub("<meta http-equiv[^>]*>", "", written)
    file.write_text(free.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += [f"--user-data-dir={folder / 'profile'}", "--timeout=20000"]
    done = subprocess.run(
        [*command, file.as_uri()], capture_output=True, text=True, check=True
    )
    title = re.search(r"<title>({.*?})</title>", done.stdout, flags=re.DOTALL)
    return json.loads(title[1])


def main() -> None:
    """Print and write a row for each number of replies."""
    matplotlib.use("agg")
    if not BROWSER:
        raise SystemExit("no chromium or chrome: apt-get install chromium")
    rows = []
    for n_replies in REPLIES:
        turns = generated_turns(n_replies)
        result = report.build_report(turns, embeddings=False)
        written = page.render_html(result, f"{n_replies} replies")
        with tempfile.TemporaryDirectory() as folder:
            times = [measure(written, Path(folder)) for _ in range(3)]
        rows.append(
            {
                "replies": n_replies,
                "megabytes": round(len(written.encode()) / 1e6, 2),
                "opened_ms": max(time["opened"] for time in times),
                "sorted_ms": round(max(time["sorted"] for time in times)),
                "tables": times[0]["tables"],
            }
        )
    record.write(pd.DataFrame(rows), "bench_report_page")


if __name__ == "__main__":
    main()
