"""`python -m sardonyx`: the command line."""

from sardonyx.cli import main

if __name__ == "__main__":
    main(prog_name="sardonyx")
