"""Parts of an SCF cut so small that every tile of an IPU has some of the work."""
