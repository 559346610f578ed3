"""`python -m broca`: the command line where no script is on the path."""

from broca.cli import main

if __name__ == "__main__":
    main()
