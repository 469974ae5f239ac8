"""The command line: one file a command; each parses, calls the library and prints.

Exit codes, for scripts: see `codes`.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from sardonyx import __version__
from sardonyx.cli import codes
from sardonyx.cli.demo import demo
from sardonyx.cli.explain import explain
from sardonyx.cli.index import index
from sardonyx.cli.match import match
from sardonyx.cli.run import run
from sardonyx.cli.workload import workload

__all__ = ["main"]


class Commands(click.Group):
    """The group, with exit codes that tell results from failures (click alone would use 1 for both)."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command line; in standalone mode leave the process with one of the codes."""
        call: Any = super().main  # its overloads do not see what is passed on
        if not standalone_mode:
            return call(*args, standalone_mode=False, **extra)
        try:
            code = call(*args, standalone_mode=False, **extra)
        except click.ClickException as error:
            error.show()
            code = codes.FAILED
        except click.Abort:
            click.echo("Interrupted.", err=True)
            code = codes.INTERRUPTED
        except SystemExit:
            # Click leaves this way when the reader of the output went away.
            code = codes.OUTPUT_CLOSED
        sys.exit(code if isinstance(code, int) else codes.FOUND)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="sardonyx")
def main() -> None:
    """XML publish/subscribe: which of many standing queries does each document satisfy?

    \b
    Examples:
      sardonyx match -s queries.txt message.xml
      sardonyx match -s alerts.yaml --json inbox/ | jq -r .subscription
      sardonyx match -s titles.xq --json inbox/ | jq -r .result
      sardonyx index build -s queries.txt.gz -o queries.sdx
      sardonyx demo

    \b
    Exit codes:
      0    found something (match, explain) or done (index, run, workload, demo)
      1    no document satisfies any subscription
      2    not done: wrong usage, an unreadable file, a missing extra
      3    done, but documents or subscriptions were refused
      130  interrupted
      141  the reader of the output went away
    """


for command in (match, explain, index, run, workload, demo):
    main.add_command(command)
