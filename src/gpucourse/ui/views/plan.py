"""A launch plan on the screen: the command that every node will start, quoted so that a shell accepts it unchanged."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from gpucourse.launch.torchrun import format_typed
from gpucourse.model.plan import LaunchPlan, NodeCommand
from gpucourse.ui.glyphs import UNICODE
from gpucourse.ui.tables import Block, Code, View, facts
from gpucourse.ui.text import format_count
from gpucourse.ui.views import slurm
from gpucourse.units import format_bytes, format_seconds

BY_HAND = (
    "By hand: copy the pushed files to a folder on each node, and paste the node's command there, on all nodes at the same "
    "time."
)
BATCH_BY_HAND = (
    "By hand: make a folder that all nodes share, with logs/, outputs/ and work/ in it. Copy the pushed files to work/. "
    "Save each file shown here next to work/, under its name, and type the command there."
)
SESSION_BY_HAND = "By hand: gpucourse ssh {module} opens a terminal on that node."
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def launch(plan: LaunchPlan) -> View:
    """Show the whole plan: where the ranks meet, what is copied, and the command of every node with its environment."""
    blocks: list[Block] = [
        facts(
            [
                ("run", plan.run_id),
                ("launcher", plan.launcher),
                ("ranks", f"{plan.rank_count} on {format_count(plan.node_count, 'node')}" if plan.batch is None else ""),
                ("requests", slurm.describe_batch(plan.batch) if plan.batch else ""),
                ("meet at", f"{plan.master_address}:{plan.master_port}" if plan.master_port and plan.world_size > 1 else ""),
                ("parameters", parameters(plan.parameters)),
                ("passed on", environment({}, plan.handed_on)),
                ("timeout", f"{format_seconds(plan.timeout_s)}, a collective {format_seconds(plan.collective_timeout_s)}"),
                ("pushed", "\n".join(f"{upload.name}  {UNICODE.dot}  {upload.source}" for upload in plan.uploads)),
                ("collected", "\n".join(("outputs/", *plan.outputs))),
                ("per node", _limits(plan)),
            ]
        )
    ]
    commands = (
        Code(command_line(command, plan.handed_on), title=_describe_owner(command), are_commands=True)
        for command in plan.commands
    )
    blocks.extend(slurm.plan(plan) or commands)
    footer = [f"Nothing was started. {_describe_manual_start(plan)}"]
    return View(title=f"Plan for {plan.own_script or plan.exercise}", blocks=blocks, footer=footer, mode=plan.mode)


def _limits(plan: LaunchPlan) -> str:
    """Return the limits on the outputs that are collected from one node, and on each log."""
    in_all, a_file, a_log = map(format_bytes, (plan.output_limit, plan.max_output_bytes, plan.log_limit))
    return f"at most {format_count(plan.max_output_files, 'file')} and {in_all}, {a_file} per file, {a_log} per log"


def _describe_manual_start(plan: LaunchPlan) -> str:
    if plan.batch is None:
        return BY_HAND
    return SESSION_BY_HAND.format(module=plan.batch.module) if plan.batch.session else BATCH_BY_HAND


def parameters(values: Mapping[str, object]) -> str:
    """Return parameters as `--set` accepts them."""
    return "  ".join(f"{name}={quote_word(str(value))}" for name, value in values.items())


def environment(values: Mapping[str, str], handed_on: Sequence[str]) -> str:
    """Return variables as `--env` accepts them: `values` with their values, and `handed_on` by name only."""
    assignments = [f"{name}={quote_word(value)}" for name, value in values.items()]
    return "  ".join([*assignments, *(f"{name} (from your own environment; its value is not stored)" for name in handed_on)])


def command_line(command: NodeCommand, handed_on: Sequence[str] = ()) -> str:
    """Return one node's command for a shell: the environment first, each variable on its own line, with every word quoted."""
    words = " ".join(quote_word(word) for word in format_typed(command.argv))
    variables = [f"  {quote_word(name)}={quote_word(value)}" for name, value in command.env.items()]
    variables += [f'  {name}="${name}"' for name in handed_on]
    if not variables:
        return words
    return " \\\n".join(["env", *variables, f"  {words}"])


def quote_word(word: str) -> str:
    """Quote a word for bash and zsh. Characters that cannot be printed are spelled out, so that the word can be shown, copied
    and pasted."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_spell_out(character) for character in word) + "'"


def _describe_owner(command: NodeCommand) -> str:
    node, ranks = command.node, command.ranks
    rank_text = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}" if ranks else "no rank"
    return f"{node.name} ({node.role}, {node.login}): {rank_text}"


def _spell_out(character: str) -> str:
    if character in _ESCAPES or character.isprintable():
        return _ESCAPES.get(character, character)
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
