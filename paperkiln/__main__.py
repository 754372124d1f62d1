"""`python -m paperkiln VERB`."""

import sys

from paperkiln.cli import main

sys.exit(main())
