"""What xpusim starts for `--policy python:FILE:CLASS`: python3 THIS_FOLDER FILE CLASS."""

from xpusim.serve import main

main()
