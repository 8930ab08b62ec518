"""`python -m cersql`: the command line."""

import sys

from cersql.cli import main

if __name__ == "__main__":
    sys.exit(main())
