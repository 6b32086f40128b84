"""Which records become molecules, and why the others do not."""
