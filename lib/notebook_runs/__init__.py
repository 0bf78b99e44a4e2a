"""Run the notebooks headlessly, and give each one a place for its tables and figures.

Inside a notebook: `run = notebook_runs.start("08", PROFILE, SEED)`, then `run.table`, `run.figure`,
`run.read`. From a shell: `python -m lib.notebook_runs --profile public --only 08`.
"""

from lib.notebook_runs.outputs import Run, start
