"""From one dataset to another: export, import, merge, split."""
