"""`python -m plimsoll`."""

from plimsoll.cli import main

if __name__ == "__main__":
    main()
