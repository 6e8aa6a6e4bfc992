"""Which commands of a finding only read. The others are shown apart, so that a pasted block changes no system.

A class histogram and a heap dump begin with a full garbage collection, which pauses the JVM: they do not only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_READS = re.compile(
    r"""
    (?!.*\sGC\.(?:class_histogram|heap_dump|run))
    (?:
      kafka-[a-z-]+\.sh\ (?!.*\s--(?:alter|execute|delete))(?:.*\s)?--(?:describe|list|dry-run)(?:\s|$)
    | kafka-(?:transactions|metadata-quorum)\.sh\ --bootstrap-server\ \S+\ (?:describe\S*|find-hanging|list)(?:\s|$)
    | kafka-(?:console-consumer|get-offsets)\.sh\s
    | aws\ [a-z0-9]+\ (?:describe|get|list)-
    | aws\ ssm\ start-session\s
    | kubectl\ (?:-n\ \S+\ )?(?:describe|get|logs|exec\ .*\ --\ jcmd)\s
    | curl\ (?!.*(?:\s-X\s|\s-d\s|--data|--request))
    | streamwarden\ (?:plan|warehouse\ psql)\s
    | (?:cat|du|echo|free|grep|jcmd|journalctl|lsof|ps)\s(?!.*\s>)
    | for\ \w+\ in\ .*;\ do\ jcmd\s
    )
    """,
    re.VERBOSE,
)
"""What is not in here counts as changing something."""


def reading(commands: Iterable[str]) -> list[str]:
    """The commands that change nothing, in their order."""
    return [command for command in commands if _READS.match(command)]


def changing(commands: Iterable[str]) -> list[str]:
    """The commands that may change a system, in their order."""
    return [command for command in commands if not _READS.match(command)]
