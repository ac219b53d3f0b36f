"""Runs the test files that are named, or all, and removes the shared sandbox at the end."""

import pathlib
import sys
import unittest

from fixture import remove_shared

FOLDER = pathlib.Path(__file__).parent


def main() -> int:
    names = sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("test_*.py"))
    suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    try:
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    finally:
        remove_shared()
    return 0 if result.wasSuccessful() and result.testsRun > 0 and not result.skipped else 1


sys.exit(main())
