"""What was drawn when items were: the items, or the prompts that several of them are of."""

from __future__ import annotations

import polars as pl

from dialometer.model.shared_texts import shared_prompts
from dialometer.model.study import Study


def drawn_items(study: Study, items: pl.Series) -> pl.Series:
    """For each item its prompt, where several items are of one prompt; else the item itself."""
    prompts = shared_prompts(study)
    return items.replace_strict(dict(prompts), return_dtype=pl.String) if prompts else items
