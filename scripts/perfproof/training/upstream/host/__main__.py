"""`python <this directory> --plan P --run-dir D --script S …`: a trainer's script, in-process."""

import importlib
import sys
from pathlib import Path

# Started by path, by an interpreter that does not know this repository.
sys.path[0] = str(Path(__file__).resolve().parent.parent)
main = importlib.import_module("host.run").main

if __name__ == "__main__":
    main()
