"""`python -m safecf` is `safecf`."""

from safecf.cli import main

if __name__ == "__main__":
    main()
