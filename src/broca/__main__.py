"""`python -m broca`: the command line, for environments without the `broca` script on the path."""

from broca.cli import main

if __name__ == "__main__":
    main()
