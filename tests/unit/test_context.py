from __future__ import annotations

from tests.learning import Learning


def test_with_label_shares_the_judge_that_close_ends(learning: Learning) -> None:
    context = learning.open_context()
    assert context.with_label("1.1").judge is context.judge
    context.close()


def test_catalog_and_settings_are_read_once_for_all_contexts_of_a_command(learning: Learning) -> None:
    context = learning.open_context()
    second_context = context.watched_by(lambda _event: None)
    assert second_context.catalog is context.catalog
    context.paths.settings.write_text("budget_usd: 7\n")
    assert context.settings.budget_usd == 7
    context.paths.settings.write_text("budget_usd: 8\n")
    assert second_context.settings is context.settings
