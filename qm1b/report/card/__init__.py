"""The dataset card and its Croissant metadata."""
