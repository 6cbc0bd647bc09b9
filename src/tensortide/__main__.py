"""`python -m tensortide` is the command `tensortide`."""

from tensortide.cli.entry import main

if __name__ == "__main__":
    main()
