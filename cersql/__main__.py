"""`python -m cersql`: the command line."""

import sys

from cersql.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
