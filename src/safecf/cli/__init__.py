"""The command line: `safecf COMMAND`.

Only `main` imports anything, so that Ctrl-C is caught meanwhile, too.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

INTERRUPTED = 130  # exit code


def main() -> None:
    """Run `safecf`; Ctrl-C ends it with one line and exit code 130, at any moment.

    It has no effect on a command that is done, while the interpreter ends.
    """
    try:
        from safecf.cli.commands import app  # noqa: PLC0415
        from safecf.cli.running import run  # noqa: PLC0415

        try:
            run(app)
        except SystemExit as end:
            if end.code != INTERRUPTED:
                import signal  # noqa: PLC0415

                signal.signal(signal.SIGINT, signal.SIG_IGN)
            raise
    except KeyboardInterrupt as interrupt:
        end_interrupted(interrupt)


def end_interrupted(interrupt: KeyboardInterrupt) -> "NoReturn":
    """Show what an interrupt says, or that there was one, and exit; another Ctrl-C kills."""
    import signal  # noqa: PLC0415
    import sys  # noqa: PLC0415

    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print(str(interrupt) or "safecf: interrupted", file=sys.stderr)
    sys.exit(INTERRUPTED)
