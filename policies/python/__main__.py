"""What xpusim starts for `--policy python:FILE:CLASS`: python3 THIS_FOLDER FILE CLASS."""

from xpusim.wire import main

main()
