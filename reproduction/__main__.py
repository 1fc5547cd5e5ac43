"""`python -m reproduction`: the tables and figures of the paper, each by one command."""

import sys

from reproduction import NAMES
from reproduction.command import main

ABOUT = """Run experiments of the paper, and write a page, its numbers and figures for each.

Finished cases are kept: after Ctrl-C or a crash, run the same command again to go on. The page of a
smaller run says so, and its files end in "-part". For example:
python -m reproduction robustness --path ml-1m.zip --splits 5 --seeds 2
"""

if __name__ == "__main__":
    sys.exit(main(NAMES, ABOUT))
